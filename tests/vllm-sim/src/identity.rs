//! The identity of a request, independent of time: the source of everything random about it.

use domain::seed::SplitMix64;
use domain::{Message, Role};
use sha2::{Digest, Sha256};

/// Names a request by its content. Equal requests are equal at any time, in any order, on any machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimIdentity {
    /// Hash of (model name, sampling seed, first prompt): equal for all rounds of one dialogue.
    pub conversation: u64,
    /// Hash of the conversation and every message: differs between rounds.
    pub request: u64,
    /// Answers given before this request, so 0 for the first prompt.
    pub round: u32,
}

impl SimIdentity {
    /// Hashes a request. The first prompt is the first message of the user; a request without one counts as having an
    /// empty one.
    pub fn of(model: &str, seed: i64, messages: &[Message]) -> Self {
        let first_prompt = first_prompt(messages);
        let mut hasher = Sha256::new();
        hasher.update(seed.to_le_bytes());
        update(&mut hasher, model);
        update(&mut hasher, first_prompt);
        let conversation = head(hasher.clone());
        let round = messages.iter().filter(|message| message.role == Role::Assistant).count();
        // The usual first round has nothing to add, and prompts are long: hash them once.
        if messages.len() > 1 {
            for message in messages {
                hasher.update([message.role as u8]);
                update(&mut hasher, &message.content);
            }
        } else {
            hasher.update([u8::MAX]);
        }
        Self { conversation, request: head(hasher), round: u32::try_from(round).unwrap_or(u32::MAX) }
    }
}

/// The first message of the user, or an empty text.
pub fn first_prompt(messages: &[Message]) -> &str {
    messages.iter().find(|message| message.role == Role::User).map_or("", |message| &message.content)
}

/// A stream of random numbers that is a function of its keys alone: a simulated run must stay repeatable with later
/// versions.
#[derive(Clone, Debug)]
pub struct Draw(SplitMix64);

impl Draw {
    /// The stream of these keys; any difference in them gives an unrelated stream.
    pub fn new(keys: &[u64]) -> Self {
        let fold = |state, &key: &u64| SplitMix64::mix(state ^ SplitMix64::new(key).next_u64());
        Self(SplitMix64::new(keys.iter().fold(0x6B67_666C_6565_7431, fold)))
    }

    /// The next number.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// The next number in [0, 1).
    pub fn unit(&mut self) -> f64 {
        self.0.unit()
    }

    /// The next index below `len`; 0 when `len` is 0. The bias is below len / 2^64.
    pub fn below(&mut self, len: usize) -> usize {
        ((u128::from(self.next_u64()) * len as u128) >> 64) as usize
    }
}

fn update(hasher: &mut Sha256, text: &str) {
    // Length first, so that ("ab", "c") and ("a", "bc") differ.
    hasher.update((text.len() as u64).to_le_bytes());
    hasher.update(text.as_bytes());
}

fn head(hasher: Sha256) -> u64 {
    let digest = hasher.finalize();
    let mut first = [0; 8];
    first.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_share_the_conversation_and_nothing_else() {
        let first = vec![Message::user("p")];
        let second = vec![Message::user("p"), Message::assistant("a"), Message::user("again")];
        let (one, two) = (SimIdentity::of("m", 1, &first), SimIdentity::of("m", 1, &second));
        assert_eq!(one.conversation, two.conversation);
        assert_ne!(one.request, two.request);
        assert_eq!((one.round, two.round), (0, 1));
        for other in
            [SimIdentity::of("m2", 1, &first), SimIdentity::of("m", 2, &first), SimIdentity::of("m", 1, &[])]
        {
            assert_ne!(one.conversation, other.conversation);
            assert_ne!(one.request, other.request);
        }
    }

    /// Recorded runs must stay repeatable: these numbers may never change.
    #[test]
    fn hashes_and_draws_are_frozen() {
        let identity = SimIdentity::of("m", 1, &[Message::user("p")]);
        assert_eq!(identity.conversation, 3_278_302_461_564_822_022);
        assert_eq!(identity.request, 11_232_219_779_155_502_167);
        assert_eq!(Draw::new(&[1, 2]).next_u64(), 12_577_642_006_303_890_512);
    }

    #[test]
    fn draws_are_uniform_enough_and_depend_on_key_order() {
        let mut draw = Draw::new(&[7]);
        let mean = (0..10_000).map(|_| draw.unit()).sum::<f64>() / 10_000.0;
        assert!((mean - 0.5).abs() < 0.02, "{mean}");
        assert!((0..1000).all(|_| draw.below(3) < 3));
        assert_eq!(draw.below(0), 0);
        assert_ne!(Draw::new(&[1, 2]).next_u64(), Draw::new(&[2, 1]).next_u64());
    }
}
