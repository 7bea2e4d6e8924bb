//! What a gate tells the other processes that share its account, and what it takes from them: the level or the record
//! that was learned, and the use beside it. When it is told, and by what way, is the store's.

use aimd::Learned as Record;

use super::Ceilings;
use crate::{Footprint, Gate};

impl Gate {
    /// What was learned, to be written to the store by compare-and-set; `None` if this gate does not learn.
    #[must_use]
    pub fn export(&self) -> Option<Record> {
        match &self.ceilings {
            Ceilings::Learned(learned) => Some(Record::Aimd(learned.export())),
            Ceilings::Steady(steady) => steady.export().map(|level| Record::Steady(Box::new(level))),
            Ceilings::None | Ceilings::Fixed(_) | Ceilings::Leased(_) => None,
        }
    }

    /// The level that the steady law keeps, if it knows one.
    #[must_use]
    pub fn level(&self) -> Option<aimd::steady::Level> {
        match &self.ceilings {
            Ceilings::Steady(steady) => steady.export(),
            Ceilings::None | Ceilings::Fixed(_) | Ceilings::Leased(_) | Ceilings::Learned(_) => None,
        }
    }

    /// What is asked of a learned ceiling here, and used, for the other processes that share it. `None` if nothing is
    /// shared in this way.
    #[must_use]
    pub fn footprint(&self, now: u64) -> Option<Footprint> {
        match &self.ceilings {
            Ceilings::Learned(learned) => {
                Some(Footprint { wanted: learned.wanted(now), ..Footprint::default() })
            }
            Ceilings::Steady(steady) => Some(steady.footprint(now)),
            Ceilings::None | Ceilings::Fixed(_) | Ceilings::Leased(_) => None,
        }
    }

    /// All other processes together ask for so much and use so much: a learned ceiling is divided.
    pub fn beside(&self, others: &Footprint, now: u64) {
        match &self.ceilings {
            Ceilings::Learned(learned) => learned.beside(others.wanted, now),
            Ceilings::Steady(steady) => steady.beside(others, now),
            Ceilings::None | Ceilings::Fixed(_) | Ceilings::Leased(_) => {}
        }
    }

    /// An account with a level, or without one yet, is in use: others should hear more often than usual of what is used, by
    /// which they judge theirs.
    #[must_use]
    pub fn is_lively(&self, now: u64) -> bool {
        matches!(&self.ceilings, Ceilings::Steady(steady) if steady.is_busy(now))
    }

    /// A park was ended by another process's probe.
    pub fn rested(&self, now: u64) {
        if let Ceilings::Steady(steady) = &self.ceilings {
            steady.rested(now);
        }
    }

    /// Takes over what other replicas learned, as read from the store. False if it does not apply here.
    pub fn adopt(&self, record: &Record, now: u64) -> bool {
        let adopted = match &self.ceilings {
            Ceilings::Learned(learned) => learned.adopt(&record.clone().into_aimd(learned.params()), now),
            Ceilings::Steady(steady) => {
                record.clone().into_steady(steady.params()).is_some_and(|level| steady.adopt(&level, now))
            }
            Ceilings::None | Ceilings::Fixed(_) | Ceilings::Leased(_) => false,
        };
        self.note_gated();
        adopted
    }
}
