// Shows /status and keeps it fresh while somebody watches. It computes nothing that /status does not say.
"use strict";

const EVERY = 2000;
const byId = (id) => document.getElementById(id);
let status = null;
let seenAt = 0;
let paused = false;
let shown = {};

// Text goes in as text only: names in a configuration are nobody's markup.
function el(tag, props, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props ?? {})) {
    if (value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const number = (value) => (typeof value === "number" ? value.toLocaleString("en") : "–");

function span(seconds) {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

// Replaces what is in `place` only when it changed, and gives the focus back to the same link.
function show(place, key, build) {
  const text = JSON.stringify(key);
  if (shown[place] === text) return;
  shown[place] = text;
  const focused = byId(place).contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  byId(place).replaceChildren(...build());
  if (focused) byId(place).querySelector(`[href="${CSS.escape(focused)}"]`)?.focus();
}

function rowsOf(columns, rows) {
  const head = columns.map((name) => el("th", { scope: "col", role: "columnheader" }, name));
  const body = rows.map((cells) => el("tr", { role: "row" }, ...cells.map((cell, index) => {
    const kind = index === 0 ? "th" : "td";
    const props = { "data-label": columns[index], role: index === 0 ? "rowheader" : "cell" };
    if (index === 0) props.scope = "row";
    if (cell === null) props.class = "none";
    return el(kind, props, el("div", {}, ...(cell === null ? ["–"] : [cell].flat())));
  })));
  return el("table", { role: "table" },
    el("thead", { role: "rowgroup" }, el("tr", { role: "row" }, ...head)),
    el("tbody", { role: "rowgroup" }, ...body));
}

function healthOf(healthy) {
  const one = (name, up) => up === null || up === undefined ? null
    : el("div", { class: up ? "good" : "bad" }, `${up ? "✓" : "✕"} ${name} ${up ? "up" : "down"}`);
  return [one("HTTP", healthy.http), one("WS", healthy.ws)];
}

function ceilingsOf(ceilings) {
  if (ceilings.length === 0) return null;
  return ceilings.map((ceiling) => {
    const full = ceiling.used >= ceiling.limit;
    const share = ceiling.limit > 0 ? Math.min(100, (100 * ceiling.used) / ceiling.limit) : 100;
    const bar = el("i");
    bar.style.width = `${share}%`;
    const window = `${number(ceiling.window_seconds)} s`;
    const unit = ceiling.unit === "compute_units" ? " CU" : "";
    const words = `${number(ceiling.used)} of ${number(ceiling.limit)}${unit} in ${window}, ${ceiling.kind}`;
    return el("div", { class: "ceiling" }, el("span", { class: full ? "warn" : null }, full ? `${words}, full` : words),
      el("span", { class: full ? "meter full" : "meter", "aria-hidden": "true" }, bar));
  });
}

// What the steady law knows of an account that it keeps a level for.
function levelOf(level) {
  if (!level) return null;
  const words = [`level ${number(level.level)}`];
  if (level.trial > 0) words.push(`trying ${number(level.trial)} more`);
  words.push(level.refused === null ? "no refusal remembered" : `refused at ${number(level.refused)}`);
  words.push(`margin ${number(100 * level.margin)} %`, `debt ${number(level.debt)}`);
  const wait = (level.next_trial - status.now) / 1000;
  if (!(level.trial > 0)) words.push(wait > 0 ? `next trial in ${span(wait)} at most` : "next trial when full");
  return el("small", {}, words.join(", "));
}

function useOf(endpoint) {
  const level = levelOf(endpoint.level);
  const ceilings = ceilingsOf(endpoint.ceilings);
  return level === null ? ceilings : [ceilings ?? [], level].flat();
}

function parkedOf(endpoint) {
  if (endpoint.parked_until === null) return null;
  const left = (endpoint.parked_until - status.now) / 1000;
  return [el("span", { class: "warn" }, `▲ ${endpoint.parked_reason.replaceAll("_", " ")}`),
    el("small", {}, left > 0 ? `expected back in ${span(left)}` : "being probed")];
}

function blockOf(endpoint) {
  if (endpoint.block === null) return null;
  return [number(endpoint.block), endpoint.lag > 0 ? el("small", {}, `${number(endpoint.lag)} behind`) : null];
}

function verdictOf(verdict) {
  if (verdict === null) return null;
  return el("span", { class: verdict === "ok" || verdict === "client_fault" ? null : "warn" }, verdict.replaceAll("_", " "));
}

const isTroubled = (endpoint) => endpoint.parked_until !== null || Object.values(endpoint.healthy).includes(false)
  || endpoint.ceilings.some((ceiling) => ceiling.used >= ceiling.limit);

function endpointRow(chain, id, endpoint) {
  const account = endpoint.account === `${chain}/${id}` ? null : el("small", {}, `account ${endpoint.account}`);
  return [[id, el("small", {}, endpoint.role), account], healthOf(endpoint.healthy), parkedOf(endpoint),
    useOf(endpoint), number(endpoint.in_flight), number(endpoint.used_24h), blockOf(endpoint),
    verdictOf(endpoint.last_verdict)];
}

const COLUMNS = ["Endpoint", "Health", "Parked", "Use of ceiling", "In flight", "In 24 h", "Block", "Last verdict"];

function chainSection(name, chain, wanted) {
  const rows = Object.entries(chain.endpoints).filter(([id, endpoint]) => wanted(name, id, endpoint))
    .map(([id, endpoint]) => endpointRow(name, id, endpoint));
  if (rows.length === 0) return null;
  const head = chain.head > 0 ? el("small", {}, ` head ${number(chain.head)}`) : null;
  return el("section", {}, el("h2", {}, name, head), rowsOf(COLUMNS, rows));
}

function fleet() {
  const text = byId("find").value.trim().toLowerCase();
  const troubled = byId("troubled").checked;
  const wanted = (chain, id, endpoint) => (!troubled || isTroubled(endpoint))
    && (text === "" || `${chain} ${id} ${endpoint.account}`.toLowerCase().includes(text));
  const sections = Object.entries(status.chains).map(([name, chain]) => chainSection(name, chain, wanted))
    .filter((section) => section !== null);
  show("fleet", [status.chains, Math.round(status.now / 1000), text, troubled],
    () => sections.length > 0 ? sections : [el("p", { class: "muted" }, troubled ? "Nothing needs attention." : "Nothing matches.")]);
}

function totals() {
  const all = status.totals;
  const tiles = [["Chains", all.chains], ["Endpoints up", `${all.usable} of ${all.endpoints}`], ["Parked", all.parked],
    ["At a ceiling", all.full], ["In flight", all.in_flight]];
  show("totals", tiles, () => tiles.map(([name, value]) =>
    el("div", {}, el("dt", {}, name), el("dd", {}, typeof value === "number" ? number(value) : value))));
}

function recent() {
  const columns = ["Request", "Chain", "Asked", "Status", "Attempts", "Took"];
  const row = (one) => [el("a", { href: `#why=${one.request_id}` }, el("code", {}, one.request_id)), one.chain ?? null,
    one.asked, String(one.status), number(one.attempts), `${one.took_ms} ms`];
  show("recent", status.recent, () => status.recent.length > 0 ? [rowsOf(columns, status.recent.map(row))]
    : [el("p", { class: "muted" }, "None.")]);
}

// The words change only when the state does, so that they are read out once.
function state(words, kind) {
  show("state", [words, kind], () => [el("span", { class: kind }, words)]);
}

function render() {
  byId("version").textContent = status.version;
  if (status.degraded.length > 0) state(`▲ Degraded: ${status.degraded.join(", ")}`, "warn");
  else if (status.totals.parked > 0 || status.totals.usable < status.totals.endpoints) state("✓ Serving, though not everybody", "good");
  else state("✓ All is well", "good");
  totals();
  fleet();
  recent();
}

function storyOf(story) {
  const keys = { status: "status", verdict: "verdict", rule: "rule", why: "", took_ms: "ms", opens_unix_ms: "opens" };
  const detail = (step) => Object.entries(keys).filter(([key]) => step[key] !== undefined).map(([key, name]) =>
    key === "opens_unix_ms" ? `opens ${new Date(step[key]).toLocaleTimeString()}`
      : key === "took_ms" ? `${step[key]} ms` : `${name} ${step[key]}`.trim()).join(", ");
  const rows = story.steps.map((step) => [`${step.at_ms} ms`, step.what, step.endpoint ?? null, detail(step) || null]);
  const reason = story.reason ? `, ${story.reason}` : "";
  return [el("p", {}, el("code", {}, story.request_id),
    `: ${story.chain ?? "no chain"}, ${story.asked}, status ${story.status}${reason}, ${story.took_ms} ms. `,
    el("a", { href: `status/why/${story.request_id}` }, "As JSON")), rowsOf(["At", "Step", "Endpoint", "Details"], rows)];
}

async function why(id) {
  const place = byId("story");
  byId("id").value = id;
  try {
    const answer = await fetch(`status/why/${encodeURIComponent(id)}`);
    const story = await answer.json();
    place.replaceChildren(...(answer.ok ? storyOf(story) : [el("p", { class: "note" }, story.error)]));
  } catch {
    place.replaceChildren(el("p", { class: "note" }, "The proxy does not answer."));
  }
  place.focus();
}

function followHash() {
  const id = decodeURIComponent(location.hash).match(/^#why=(.+)$/)?.[1];
  if (id) why(id);
}

function age() {
  if (seenAt === 0) return;
  byId("updated").textContent = paused ? "paused" : `updated ${Math.round((Date.now() - seenAt) / 1000)} s ago`;
}

async function refresh() {
  if (!paused && !document.hidden) {
    try {
      const answer = await fetch("status", { signal: AbortSignal.timeout(5 * EVERY) });
      if (!answer.ok) throw new Error(String(answer.status));
      status = await answer.json();
      seenAt = Date.now();
      render();
    } catch {
      state("✕ The proxy does not answer; what is shown is old", "bad");
    }
  }
  age();
  setTimeout(refresh, EVERY);
}

byId("controls").addEventListener("submit", (event) => event.preventDefault());
byId("find").addEventListener("input", () => status && fleet());
byId("troubled").addEventListener("change", () => status && fleet());
byId("pause").addEventListener("click", (event) => {
  paused = !paused;
  event.currentTarget.setAttribute("aria-pressed", String(paused));
  event.currentTarget.textContent = paused ? "Go on" : "Pause";
  age();
});
byId("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  const id = byId("id").value.trim();
  if (id === "") return;
  if (location.hash === `#why=${id}`) why(id);
  else location.hash = `why=${id}`;
});
addEventListener("hashchange", followHash);
followHash();
refresh();
