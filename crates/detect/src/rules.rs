//! The ordered table of rules: which of them a refusal meets first. The operator's come before ours.
//! Compiled once; a refusal's text is searched once for the phrases of all rules together.

mod file;
mod matcher;
mod providers;

use crate::answer;
use crate::head::Head;
use crate::said::Said;
use crate::stream::{Stream, WHOLE};
use crate::verdict::{Detail, Judgement, RuleId, Verdict};
use crate::{wait, window};

pub use file::RulesError;
use file::Table;
use matcher::{Asked, Matcher};

/// Our own rules, in the order they are asked.
const BUILTIN: [(&str, &str); 5] = [
    ("guards.json", include_str!("../rules/guards.json")),
    ("refusals.json", include_str!("../rules/refusals.json")),
    ("limits.json", include_str!("../rules/limits.json")),
    ("access.json", include_str!("../rules/access.json")),
    ("fallback.json", include_str!("../rules/fallback.json")),
];

/// All rules, compiled.
#[derive(Debug)]
pub struct Rules {
    matcher: Matcher,
    outcomes: Vec<Outcome>,
}

#[derive(Debug)]
struct Outcome {
    name: String,
    judgement: Judgement,
}

impl Rules {
    /// Our own rules.
    pub fn builtin() -> Rules {
        let mut table = Table::default();
        add_builtin(&mut table).expect("a test compiles the embedded rules");
        Rules::compile(table)
    }

    /// The rules in `text`, a file called `name`, before our own.
    ///
    /// # Errors
    /// The first thing wrong in the file, with its line and field.
    pub fn with_user(text: &str, name: &str) -> Result<Rules, RulesError> {
        let mut builtin = Table::default();
        add_builtin(&mut builtin)?;
        let mut table = Table { groups: builtin.groups, rules: Vec::new() };
        table.add(text, name)?;
        table.rules.append(&mut builtin.rules);
        Ok(Rules::compile(table))
    }

    /// A rule's name; ids of another `Rules` give any name or `unknown`.
    pub fn name(&self, id: RuleId) -> &str {
        match id.index().checked_sub(RuleId::FIXED.len()) {
            None => RuleId::FIXED[id.index()],
            Some(at) => self.outcomes.get(at).map_or("unknown", |outcome| outcome.name.as_str()),
        }
    }

    /// How many ids there are: every [`RuleId::index`] is below.
    pub fn len(&self) -> usize {
        RuleId::FIXED.len() + self.outcomes.len()
    }

    /// Never: there are always the fixed ones.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What a complete body means; of a batch its worst item.
    pub fn judge(&self, head: &Head<'_>, body: &[u8]) -> Judgement {
        let mut stream = self.whole();
        stream.push(self, head, body);
        stream.finish(self, head)
    }

    /// For a body that comes in chunks and should be known early.
    pub fn stream(&self) -> Stream {
        Stream::new(WHOLE)
    }

    /// For a body that is judged whole however long it is.
    pub fn whole(&self) -> Stream {
        Stream::new(usize::MAX)
    }

    /// What the head alone means, where a body was not read.
    pub fn judge_head(&self, head: &Head<'_>) -> Judgement {
        answer::no_answer(self, head, RuleId::EMPTY)
    }

    /// The first rule that a refusal meets.
    pub(crate) fn refusal(&self, head: &Head<'_>, said: &Said) -> Judgement {
        let Some(at) = self.matcher.first(&Asked::new(head, said)) else {
            return Judgement::fixed(Verdict::UpstreamFault, RuleId::UNKNOWN, Detail::Undecided);
        };
        let mut judgement = self.outcomes[at].judgement;
        if judgement.verdict.is_limit() {
            judgement.wait = wait::asked(head, said);
        }
        if judgement.verdict == Verdict::RateLimited {
            judgement.window = window::stated(head.headers, said);
        }
        judgement
    }

    fn compile(table: Table) -> Rules {
        let (matcher, outcomes) = matcher::compile(table.rules);
        let outcomes = outcomes
            .into_iter()
            .enumerate()
            .map(|(at, (name, verdict, scope, detail))| {
                let rule = RuleId((RuleId::FIXED.len() + at) as u16);
                Outcome { name, judgement: Judgement { scope, ..Judgement::fixed(verdict, rule, detail) } }
            })
            .collect();
        Rules { matcher, outcomes }
    }
}

fn add_builtin(table: &mut Table) -> Result<(), RulesError> {
    BUILTIN.iter().try_for_each(|(name, text)| table.add(text, name))
}
