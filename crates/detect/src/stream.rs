//! Judges an answer while it passes, in chunks cut anywhere: the verdict of a long answer is known before
//! its end, the items of a batch are judged one by one. Holds no payload, allocates nothing for a success.

use std::ops::Range;

use crate::answer;
use crate::head::Head;
use crate::object::{First, Object, Place};
use crate::rules::Rules;
use crate::scan::{Value, is_space};
use crate::verdict::{Detail, Judgement, RuleId, Verdict};
use crate::words::TEXT;

/// An answer that is complete within so many bytes is judged whole.
pub const WHOLE: usize = 4096;

/// One answer of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Where it is in the body.
    pub span: Range<usize>,
    /// Where its raw `id` is in the body; `null` is an id too.
    pub id: Option<Range<usize>>,
    /// What it means.
    pub judgement: Judgement,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// Nothing but white space yet.
    Start,
    /// In an object that is the body.
    Single,
    /// After that object.
    After,
    /// In an array, between its items.
    Between,
    /// In an object of the array.
    Item,
    /// In an item that is no object.
    Stray,
    /// After the array.
    Done,
    /// In something that is no JSON.
    Text,
}

/// An answer being judged. Made once per answer; cheap, and nothing on the heap until something fails.
#[derive(Debug)]
pub struct Stream {
    mode: Mode,
    seen: usize,
    whole: usize,
    object: Object,
    start: usize,
    stray: Option<Value>,
    certain: Option<Judgement>,
    single: Option<Item>,
    batch: bool,
    items: Vec<Item>,
    text: Vec<u8>,
}

impl Stream {
    /// For a body that is judged whole while it has at most `whole` bytes.
    pub(crate) const fn new(whole: usize) -> Stream {
        Stream {
            mode: Mode::Start,
            seen: 0,
            whole,
            object: Object::new(),
            start: 0,
            stray: None,
            certain: None,
            single: None,
            batch: false,
            items: Vec::new(),
            text: Vec::new(),
        }
    }

    /// Reads the next chunk. The judgement comes as soon as it is certain: never within the first
    /// [`WHOLE`] bytes, never for a batch, and then with every further chunk.
    pub fn push(&mut self, rules: &Rules, head: &Head<'_>, chunk: &[u8]) -> Option<Judgement> {
        let mut at = 0;
        while at < chunk.len() {
            at = self.step(rules, head, chunk, at);
        }
        self.seen += chunk.len();
        if self.certain.is_none() && self.seen > self.whole {
            self.certain = self.decided(rules, head);
        }
        self.certain
    }

    /// The body has ended. One that ends inside its JSON is a fault even if it was certainly a success.
    pub fn finish(&mut self, rules: &Rules, head: &Head<'_>) -> Judgement {
        if let (0, Some((_, reason))) = (self.seen, head.ws_close)
            && !reason.is_empty()
        {
            self.push(rules, head, reason.as_bytes());
        }
        match self.mode {
            Mode::Start => answer::no_answer(rules, head, RuleId::EMPTY),
            Mode::Single => self.finish_cut(rules, head),
            Mode::After => self.single.as_ref().map_or(Judgement::SUCCESS, |item| item.judgement),
            Mode::Text if !self.batch => self.finish_text(rules, head),
            Mode::Between | Mode::Item | Mode::Stray | Mode::Text => {
                let cut = answer::no_answer(rules, head, RuleId::TRUNCATED);
                self.worst().map_or(cut, |worst| worst.worse(cut))
            }
            Mode::Done => self.worst().unwrap_or_else(|| answer::no_answer(rules, head, RuleId::NO_RESULT)),
        }
    }

    /// The answers judged so far: a batch's in its order, or the one there is once it is complete.
    pub fn items(&self) -> &[Item] {
        if self.batch { &self.items } else { self.single.as_slice() }
    }

    /// Whether the body is an array of answers.
    pub const fn is_batch(&self) -> bool {
        self.batch
    }

    fn step(&mut self, rules: &Rules, head: &Head<'_>, chunk: &[u8], at: usize) -> usize {
        match self.mode {
            Mode::Start => self.begin(chunk, at),
            Mode::Single => self.read_single(rules, head, chunk, at),
            Mode::After => self.read_after(chunk, at),
            Mode::Between => self.read_between(chunk, at),
            Mode::Item => self.read_item(rules, head, chunk, at),
            Mode::Stray => self.read_stray(chunk, at),
            Mode::Text => self.read_text(chunk, at),
            Mode::Done => chunk.len(),
        }
    }

    fn begin(&mut self, chunk: &[u8], at: usize) -> usize {
        match chunk[at] {
            // White space, or a byte order mark.
            byte if is_space(byte) || matches!(byte, 0xEF | 0xBB | 0xBF) => at + 1,
            b'{' => self.begin_object(Mode::Single, at),
            b'[' => {
                self.mode = Mode::Between;
                at + 1
            }
            _ => {
                self.mode = Mode::Text;
                at
            }
        }
    }

    fn begin_object(&mut self, mode: Mode, at: usize) -> usize {
        self.mode = mode;
        self.start = self.seen + at;
        self.object.reset();
        at
    }

    fn read_single(&mut self, rules: &Rules, head: &Head<'_>, chunk: &[u8], at: usize) -> usize {
        let end = self.object.advance(chunk, at, self.seen);
        match self.object.place {
            Place::Closed => {
                let judgement = self.judge_single(rules, head, self.seen + end);
                self.end_single(judgement, self.seen + end);
                self.mode = Mode::After;
            }
            Place::Another => {
                // The server gave up on this document and began another.
                let cut = answer::no_answer(rules, head, RuleId::TRUNCATED);
                self.end_single(cut, self.seen + end);
                self.begin_object(Mode::Single, end);
            }
            Place::Broken => self.mode = Mode::Text,
            Place::Open
            | Place::Key
            | Place::InKey
            | Place::Colon
            | Place::Value
            | Place::Inside
            | Place::After => {}
        }
        end
    }

    fn judge_single(&self, rules: &Rules, head: &Head<'_>, end: usize) -> Judgement {
        let first = if end <= self.whole { None } else { answer::by_first(rules, head, &self.object) };
        first.unwrap_or_else(|| answer::whole(rules, head, &self.object))
    }

    /// A document of the body is over. The first one counts, unless a later one says what went wrong.
    fn end_single(&mut self, judgement: Judgement, end: usize) {
        let Some(first) = &mut self.single else {
            self.single = Some(Item { span: self.start..end, id: self.object.id.take(), judgement });
            return;
        };
        let given_up = first.judgement.rule == RuleId::TRUNCATED;
        let in_time = end <= self.whole || given_up;
        let explains = judgement.verdict != Verdict::Ok && judgement.rule != RuleId::TRUNCATED;
        if in_time && explains && (given_up || first.judgement.verdict == Verdict::Ok) {
            first.judgement = judgement;
        }
    }

    /// What follows a document: another one, or nothing of interest.
    fn read_after(&mut self, chunk: &[u8], at: usize) -> usize {
        match memchr::memchr(b'{', &chunk[at..]) {
            Some(ahead) => self.begin_object(Mode::Single, at + ahead),
            None => chunk.len(),
        }
    }

    fn read_between(&mut self, chunk: &[u8], at: usize) -> usize {
        match chunk[at] {
            byte if is_space(byte) || byte == b',' => at + 1,
            b']' => {
                (self.mode, self.batch) = (Mode::Done, true);
                at + 1
            }
            b'{' => self.begin_object(Mode::Item, at),
            first => {
                self.stray = Value::starting_with(first);
                self.start = self.seen + at;
                self.mode = if self.stray.is_some() { Mode::Stray } else { Mode::Text };
                at
            }
        }
    }

    fn read_item(&mut self, rules: &Rules, head: &Head<'_>, chunk: &[u8], at: usize) -> usize {
        let end = self.object.advance(chunk, at, self.seen);
        match self.object.place {
            Place::Closed => {
                let judgement = answer::whole(rules, head, &self.object);
                let id = self.object.id.take();
                self.push_item(Item { span: self.start..self.seen + end, id, judgement });
            }
            Place::Broken | Place::Another => self.mode = Mode::Text,
            Place::Open
            | Place::Key
            | Place::InKey
            | Place::Colon
            | Place::Value
            | Place::Inside
            | Place::After => {}
        }
        end
    }

    fn read_stray(&mut self, chunk: &[u8], at: usize) -> usize {
        let Some(end) = self.stray.as_mut().and_then(|value| value.advance(chunk, at)) else {
            return chunk.len();
        };
        let judgement = Judgement::fixed(Verdict::UpstreamFault, RuleId::NO_RESULT, Detail::None);
        self.push_item(Item { span: self.start..self.seen + end, id: None, judgement });
        end
    }

    fn push_item(&mut self, item: Item) {
        self.items.push(item);
        (self.mode, self.batch) = (Mode::Between, true);
    }

    fn read_text(&mut self, chunk: &[u8], at: usize) -> usize {
        let room = TEXT.saturating_sub(self.text.len());
        self.text.extend_from_slice(&chunk[at..chunk.len().min(at + room)]);
        chunk.len()
    }

    /// The judgement of a body beyond its first [`WHOLE`] bytes, if nothing to come can change it.
    fn decided(&self, rules: &Rules, head: &Head<'_>) -> Option<Judgement> {
        match (&self.single, self.mode) {
            (None, Mode::Single) => answer::by_first(rules, head, &self.object),
            (Some(first), Mode::Single | Mode::After) if first.judgement.rule != RuleId::TRUNCATED => {
                Some(first.judgement)
            }
            (None, Mode::Text) if !self.batch && self.text.len() >= TEXT => {
                Some(self.judge_text(rules, head))
            }
            _ => None,
        }
    }

    fn finish_cut(&mut self, rules: &Rules, head: &Head<'_>) -> Judgement {
        let cut = answer::cut(rules, head, &self.object);
        self.end_single(cut, self.seen);
        self.single.as_ref().map_or(cut, |item| item.judgement)
    }

    fn finish_text(&mut self, rules: &Rules, head: &Head<'_>) -> Judgement {
        match &self.single {
            Some(first) => first.judgement,
            None => self.judge_text(rules, head),
        }
    }

    /// A body that is no JSON, or stopped being JSON: payload of a success is no text to search.
    fn judge_text(&self, rules: &Rules, head: &Head<'_>) -> Judgement {
        match self.object.first {
            Some(First::Result) => answer::no_answer(rules, head, RuleId::TRUNCATED),
            _ if self.object.error_complete => answer::cut(rules, head, &self.object),
            _ => answer::text(rules, head, &self.text),
        }
    }

    fn worst(&self) -> Option<Judgement> {
        self.items.iter().map(|item| item.judgement).reduce(Judgement::worse)
    }
}
