// The operators' page in a real browser: it loads without an error, follows the fleet, explains a request that was
// retried twice, reads well in light, dark and on a phone, and needs no mouse.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync, mkdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import puppeteer from "puppeteer-core";
import { providers } from "./providers.mjs";

const { HEADGATE_PROXY, CHROMIUM, PICTURES } = process.env;
// Longer than anything here may take.
const PATIENCE = 60_000;
let passed = 0;
let failed = 0;

function check(name, ok, found) {
  if (ok) passed += 1;
  else failed += 1;
  console.log(ok ? `ok ${name}` : `FAILED ${name}: ${JSON.stringify(found)}`);
}

// After the first probes nothing is counted but what is asked here: numbers stand still while they are compared.
const quiet = { HEALTH_CHECK_INTERVAL: "0", EPHEMERAL_CHECKS_ENABLED: "false" };

// Starts the proxy; its ports are in the line that says it listens.
async function startProxy(folder, endpoints) {
  writeFileSync(join(folder, "endpoints.json"), JSON.stringify(endpoints));
  const env = { SERVER_PORT: "0", METRICS_PORT: "0", LOG_FORMAT: "json", ...quiet, CONFIG_FILE: "endpoints.json", PATH: process.env.PATH };
  const child = spawn(HEADGATE_PROXY, [], { cwd: folder, env, stdio: ["ignore", "ignore", "pipe"] });
  const lines = createInterface({ input: child.stderr });
  const ports = await new Promise((resolve, reject) => {
    child.once("exit", (code) => reject(new Error(`the proxy ended with ${code}`)));
    lines.on("line", (line) => {
      const said = JSON.parse(line);
      const port = (address) => address.slice(address.lastIndexOf(":") + 1);
      if (said.message === "listening") resolve({ clients: port(said.addr), operators: port(said.metrics_addr) });
    });
  });
  return { child, ports };
}

async function ready(port) {
  const end = Date.now() + PATIENCE;
  while (Date.now() < end) {
    if ((await fetch(`http://127.0.0.1:${port}/ready`)).ok) return;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  throw new Error("the proxy is not ready");
}

const text = (page) => page.evaluate(() => document.body.innerText);
const saw = (page, words) => page.waitForFunction((words) => document.body.innerText.includes(words), { timeout: PATIENCE }, words)
  .then(() => true, () => false);

// What can be read in the page, and how well it stands out from what is behind it (WCAG 2, 1.4.3).
function contrasts() {
  const rgb = (color) => (color.match(/[\d.]+/g) ?? []).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = rgb(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
    }
    return [255, 255, 255];
  };
  const worst = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((child) => child.nodeType === Node.TEXT_NODE && child.data.trim() !== "");
    if (!own || node.tagName === "NOSCRIPT" || node.getClientRects().length === 0) continue;
    const [a, b] = [light(rgb(getComputedStyle(node).color)), light(behind(node))].sort((x, y) => y - x);
    worst.push([Math.round(((a + 0.05) / (b + 0.05)) * 100) / 100, node.innerText.slice(0, 30)]);
  }
  return worst.sort((x, y) => x[0] - y[0]).slice(0, 3);
}

async function looks(page, name, scheme, viewport) {
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }]);
  await page.setViewport(viewport);
  const worst = await page.evaluate(contrasts);
  check(`${name}: every text has a contrast of 4.5 at least`, worst.length > 0 && worst[0][0] >= 4.5, worst);
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  check(`${name}: nothing sticks out sideways`, wide <= 0, wide);
  if (PICTURES) await page.screenshot({ path: join(PICTURES, `${name}.png`), fullPage: true });
}

// Walks through the page with the tabulator; what had the focus, and whether that could be seen.
async function walk(page) {
  await page.evaluate(() => { document.activeElement?.blur(); scrollTo(0, 0); });
  const met = [];
  for (let step = 0; step < 30; step += 1) {
    await page.keyboard.press("Tab");
    const at = await page.evaluate(() => {
      const node = document.activeElement;
      const style = getComputedStyle(node);
      return { name: node.id || node.textContent.trim().slice(0, 30), seen: style.outlineStyle !== "none" && style.outlineWidth !== "0px", tag: node.tagName };
    });
    if (at.tag === "BODY") break;
    met.push(at);
  }
  return met;
}

async function explains(page, id) {
  check("the retried request is listed", await saw(page, id), await text(page));
  const met = await walk(page);
  const names = met.map((at) => at.name);
  const wanted = ["Skip to the fleet", "find", "troubled", "pause", "id", "Look up", id];
  check("everything is reached with the keyboard", wanted.every((name) => names.includes(name)), names);
  check("the focus is always seen", met.every((at) => at.seen), met.filter((at) => !at.seen));
  await page.focus(`a[href="#why=${id}"]`);
  await page.keyboard.press("Enter");
  const told = await page.waitForFunction(() => document.querySelectorAll("#story tbody tr").length >= 3, { timeout: PATIENCE })
    .then(() => true, () => false);
  const story = await page.$eval("#story", (node) => node.innerText);
  check("its link tells all three attempts", told && ["broken", "limited", "good", "rate_limited"].every((word) => story.includes(word)), story);
}

async function narrows(page) {
  await page.focus("#troubled");
  await page.keyboard.press("Space");
  const rows = () => page.$$eval("#fleet tbody tr", (nodes) => nodes.map((node) => node.innerText.split("\n")[0]));
  check("only what needs attention is left", (await rows()).length === 1 && (await text(page)).includes("hinted"), await rows());
  await page.keyboard.press("Space");
  await page.type("#find", "goo");
  check("the search narrows to one endpoint", (await rows()).length === 1, await rows());
  await page.$eval("#find", (node) => { node.value = ""; node.dispatchEvent(new Event("input")); });
}

async function everyNumber(page, operators) {
  await page.click("#pause");
  const status = JSON.stringify(await (await fetch(`${operators}/status`)).json());
  const numbers = new Set(status.match(/\d+(\.\d+)?/g));
  const shown = await page.$$eval("#totals dd, #fleet td, #recent td", (nodes) => nodes.map((node) => node.innerText).join(" "));
  // A time left is a time in /status seen from now.
  const missing = shown.replace(/expected back in \d+ \w+/g, "").replaceAll(",", "").match(/\d+(\.\d+)?/g).filter((one) => !numbers.has(one));
  check("every number is in /status", missing.length === 0, missing);
  await page.click("#pause");
}

async function run(browser, ports) {
  const operators = `http://127.0.0.1:${ports.operators}`;
  const page = await browser.newPage();
  page.setDefaultTimeout(PATIENCE);
  const errors = [];
  page.on("console", (message) => { if (["error", "warn"].includes(message.type())) errors.push(message.text()); });
  page.on("pageerror", (error) => errors.push(String(error)));
  page.on("request", (request) => { if (!request.url().startsWith(operators) && !request.url().startsWith("data:")) errors.push(`fetched ${request.url()}`); });
  const answer = await page.goto(`${operators}/`, { waitUntil: "networkidle0" });
  check("the page has its policy", answer.headers()["content-security-policy"]?.includes("default-src 'none'"), answer.headers());
  check("all endpoints are shown", await saw(page, "3 of 3"), await text(page));
  check("nothing is parked yet", (await page.$$eval("#fleet .warn", (nodes) => nodes.length)) === 0, await text(page));

  const call = { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_gasPrice", params: [] }) };
  const served = await fetch(`http://127.0.0.1:${ports.clients}/main`, call);
  const id = served.headers.get("x-request-id");
  check("the request was served", served.status === 200 && (await served.json()).result === "0x1", served.status);
  check("the page follows: an endpoint is parked", await saw(page, "hinted"), await text(page));
  await explains(page, id);
  await everyNumber(page, operators);
  await narrows(page);
  await looks(page, "light", "light", { width: 1280, height: 800 });
  await looks(page, "dark", "dark", { width: 1280, height: 800 });
  await looks(page, "phone", "dark", { width: 390, height: 844, isMobile: true, hasTouch: true });
  check("the console is silent", errors.length === 0, errors);
  return { page, id };
}

async function why(id, operators, folder) {
  const child = spawn(HEADGATE_PROXY, ["why", id, "--url", `http://127.0.0.1:${operators}`], { cwd: folder });
  let said = "";
  child.stdout.on("data", (part) => { said += part; });
  const code = await new Promise((resolve) => child.once("close", resolve));
  check("headgate-proxy why tells the same", code === 0 && ["broken", "limited", "good"].every((word) => said.includes(word)), said);
}

const folder = mkdtempSync(join(tmpdir(), "headgate-page-"));
if (PICTURES) mkdirSync(PICTURES, { recursive: true });
const { servers, endpoints } = await providers();
const { child, ports } = await startProxy(folder, endpoints);
// Without a sandbox, since it runs as root in a container; the page is our own.
const browser = await puppeteer.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-gpu"], headless: true, timeout: PATIENCE });
try {
  await ready(ports.clients);
  const { page, id } = await run(browser, ports);
  await why(id, ports.operators, folder);
  child.kill("SIGKILL");
  check("a proxy that is gone is said", await saw(page, "does not answer"), await text(page));
} finally {
  await browser.close();
  child.kill("SIGKILL");
  servers.forEach((server) => { server.closeAllConnections(); server.close(); });
  rmSync(folder, { recursive: true, force: true });
}
console.log(`page: ${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 && passed > 0 ? 0 : 1;
