//! Endpoints of a chain, by their indices: those that a request has asked already, those that it found dry.

/// A set of indices into a chain's endpoints. The first 64 cost no allocation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Indices {
    first: u64,
    more: Vec<u64>,
}

impl Indices {
    pub(crate) fn insert(&mut self, index: u16) {
        let (word, bit) = (usize::from(index / 64), 1 << (index % 64));
        if word == 0 {
            self.first |= bit;
            return;
        }
        if self.more.len() < word {
            self.more.resize(word, 0);
        }
        self.more[word - 1] |= bit;
    }

    pub(crate) fn remove(&mut self, index: u16) {
        let (word, bit) = (usize::from(index / 64), 1 << (index % 64));
        let word = if word == 0 { Some(&mut self.first) } else { self.more.get_mut(word - 1) };
        if let Some(word) = word {
            *word &= !bit;
        }
    }

    pub(crate) fn contains(&self, index: u16) -> bool {
        let (word, bit) = (usize::from(index / 64), 1 << (index % 64));
        let word = if word == 0 { Some(&self.first) } else { self.more.get(word - 1) };
        word.is_some_and(|word| word & bit != 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first == 0 && self.more.iter().all(|word| *word == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_inserted_is_contained_and_nothing_else() {
        let mut tried = Indices::default();
        assert!(tried.is_empty());
        for index in [0, 63, 64, 300] {
            assert!(!tried.contains(index));
            tried.insert(index);
            assert!(tried.contains(index));
        }
        tried.remove(64);
        assert!(!tried.contains(64) && tried.contains(300));
        tried.insert(64);
        assert!(!tried.contains(1) && !tried.contains(299) && !tried.contains(u16::MAX));
    }
}
