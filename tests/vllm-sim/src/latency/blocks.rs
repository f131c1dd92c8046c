//! The KV cache: a pool of blocks of 16 tokens. Full blocks are found again by the hash of everything up to their end
//! (vLLM's automatic prefix caching).
//!
//! A block is free, held by requests, or cached: not held, but findable, and evicted when room is needed, least
//! recently used first. Identical full blocks of several requests are one block.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hasher};

use crate::tokenizer::BYTES_PER_TOKEN;

/// Tokens of one block, vLLM's default on GPUs.
pub const BLOCK_TOKENS: u32 = 16;

/// Bytes of text in one block.
pub const BLOCK_BYTES: usize = BLOCK_TOKENS as usize * BYTES_PER_TOKEN;

/// The hashes of a text's full blocks. Each covers all text before it, so equal hashes mean equal prefixes.
pub fn block_hashes(text: &str) -> Vec<u64> {
    let mut chain = DefaultHasher::new();
    text.as_bytes()
        .chunks_exact(BLOCK_BYTES)
        .map(|bytes| {
            chain.write(bytes);
            chain.finish()
        })
        .collect()
}

/// The blocks of one engine.
#[derive(Debug)]
pub struct BlockPool {
    total: u32,
    /// Blocks that cannot be found by hash: partly filled ones, and those reserved for text to come.
    anonymous: u32,
    /// Full blocks, held or cached.
    full: HashMap<u64, FullBlock>,
    /// The cached ones among them by time of last use.
    evictable: BTreeMap<u64, u64>,
    /// Source of `last_use`: counts releases.
    clock: u64,
}

#[derive(Debug)]
struct FullBlock {
    /// Requests that hold it.
    holders: u32,
    /// Its key in `evictable` while nobody holds it.
    last_use: u64,
}

/// Blocks held by one request. Give it back with [`BlockPool::release`].
#[derive(Debug)]
pub struct Holding {
    prompt: Vec<u64>,
    anonymous: u32,
    /// Prompt tokens whose KV entries were in the cache.
    pub cached_tokens: u32,
}

impl BlockPool {
    /// An empty pool of so many blocks.
    pub fn new(total: u32) -> Self {
        Self { total, anonymous: 0, full: HashMap::new(), evictable: BTreeMap::new(), clock: 0 }
    }

    /// All blocks.
    pub fn total(&self) -> u32 {
        self.total
    }

    /// Blocks held by requests.
    pub fn held(&self) -> u32 {
        self.anonymous + count(self.full.len() - self.evictable.len())
    }

    /// Cached blocks that are not held.
    pub fn cached(&self) -> u32 {
        count(self.evictable.len())
    }

    /// Takes the blocks of a request whose prompt and answer have so many tokens together: the prompt's full blocks, given
    /// by their hashes, from the cache where possible, the rest anew. `None`, and nothing changes, when there is no room.
    ///
    /// The last prompt token is always computed (it yields the first answer token), so at most
    /// `prompt_tokens - 1` tokens count as cached.
    pub fn acquire(&mut self, prompt: &[u64], prompt_tokens: u32, all_tokens: u32) -> Option<Holding> {
        let needed = all_tokens.div_ceil(BLOCK_TOKENS).max(count(prompt.len()));
        let hits = count(prompt.iter().take_while(|hash| self.full.contains_key(hash)).count());
        let known = prompt.iter().filter(|hash| self.full.contains_key(hash)).count();
        let waking =
            prompt.iter().filter(|hash| self.full.get(hash).is_some_and(|block| block.holders == 0)).count();
        let new = needed - count(known);
        if self.held().checked_add(count(waking))?.checked_add(new)? > self.total {
            return None;
        }
        for hash in prompt {
            match self.full.get_mut(hash) {
                Some(block) => {
                    if block.holders == 0 {
                        self.evictable.remove(&block.last_use);
                    }
                    block.holders += 1;
                }
                None => {
                    self.full.insert(*hash, FullBlock { holders: 1, last_use: 0 });
                }
            }
        }
        let anonymous = needed - count(prompt.len());
        self.anonymous += anonymous;
        self.evict_down_to_total();
        let cached_tokens = (hits * BLOCK_TOKENS).min(prompt_tokens.saturating_sub(1));
        Some(Holding { prompt: prompt.to_vec(), anonymous, cached_tokens })
    }

    /// Gives a request's blocks back. `answer` are the hashes of the full blocks that its answer filled; empty for an
    /// aborted one.
    pub fn release(&mut self, holding: Holding, answer: &[u64]) {
        let Holding { prompt, anonymous, .. } = holding;
        self.anonymous -= anonymous;
        // Tails first, so that the beginning of a text, useful to more requests, is evicted last.
        let keep = answer.len().min(anonymous as usize);
        for hash in answer[..keep].iter().rev() {
            self.clock += 1;
            if !self.full.contains_key(hash) {
                self.full.insert(*hash, FullBlock { holders: 0, last_use: self.clock });
                self.evictable.insert(self.clock, *hash);
            }
        }
        for hash in prompt.into_iter().rev() {
            self.clock += 1;
            if let Some(block) = self.full.get_mut(&hash) {
                block.holders -= 1;
                if block.holders == 0 {
                    block.last_use = self.clock;
                    self.evictable.insert(self.clock, hash);
                }
            }
        }
        self.evict_down_to_total();
    }

    fn evict_down_to_total(&mut self) {
        while self.held() + self.cached() > self.total {
            let Some((_, hash)) = self.evictable.pop_first() else { break };
            self.full.remove(&hash);
        }
    }
}

/// Blocks are counted in `u32`, of which a pool never has more.
fn count(blocks: usize) -> u32 {
    u32::try_from(blocks).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hashes_cover_the_prefix() {
        let (a, b) = ("a".repeat(130), "a".repeat(64) + &"b".repeat(64));
        let (a, b) = (block_hashes(&a), block_hashes(&b));
        assert_eq!((a.len(), b.len()), (2, 2));
        assert_eq!(a[0], b[0]);
        assert_ne!(a[1], b[1]);
        assert_ne!(a[0], a[1]);
    }

    #[test]
    fn a_second_request_finds_the_first_ones_blocks() {
        let mut pool = BlockPool::new(10);
        let first = pool.acquire(&[1, 2], 40, 60).unwrap();
        assert_eq!((first.cached_tokens, pool.held()), (0, 4));
        // Shares two held blocks and needs two more.
        let second = pool.acquire(&[1, 2], 40, 60).unwrap();
        assert_eq!((second.cached_tokens, pool.held()), (32, 6));
        pool.release(first, &[3]);
        pool.release(second, &[3]);
        assert_eq!((pool.held(), pool.cached()), (0, 3));
        // A follow-up finds prompt and answer; a prompt of exactly the cached blocks still computes its last token.
        let follow_up = pool.acquire(&[1, 2, 3], 48, 50).unwrap();
        assert_eq!(follow_up.cached_tokens, 47);
    }

    #[test]
    fn the_least_recently_used_goes_first_and_full_pools_refuse() {
        let mut pool = BlockPool::new(4);
        for hash in 1..=4 {
            let held = pool.acquire(&[hash], 16, 16).unwrap();
            pool.release(held, &[]);
        }
        let again = pool.acquire(&[1], 16, 16).unwrap();
        pool.release(again, &[]);
        let other = pool.acquire(&[9], 16, 16).unwrap();
        assert_eq!(pool.acquire(&[1], 17, 17).unwrap().cached_tokens, 16);
        assert!(pool.acquire(&[7, 8], 32, 32).is_none());
        assert_eq!(pool.held(), 3);
        pool.release(other, &[]);
        // Block 2 was the first to be evicted.
        assert_eq!(pool.acquire(&[2], 17, 17).map(|held| held.cached_tokens), Some(0));
    }

    proptest! {
        #[test]
        fn nothing_is_lost_or_made_up(
            total in 1_u32..12,
            steps in prop::collection::vec((prop::bool::ANY, 0_u64..4, 0_usize..5, 0_u32..40), 1..60),
        ) {
            let mut pool = BlockPool::new(total);
            let mut held = Vec::new();
            for (release, family, len, extra) in steps {
                if release && !held.is_empty() {
                    let (holding, answer): (Holding, Vec<u64>) = held.swap_remove(len % held.len());
                    pool.release(holding, &answer);
                } else {
                    // Hashes of one family form a chain, as real prefixes do.
                    let prompt: Vec<u64> = (0..len as u64).map(|at| family * 100 + at).collect();
                    let tokens = count(prompt.len()) * BLOCK_TOKENS + 1;
                    if let Some(holding) = pool.acquire(&prompt, tokens, tokens + extra) {
                        prop_assert!(holding.cached_tokens < tokens);
                        held.push((holding, vec![family * 100 + len as u64]));
                    }
                }
                prop_assert!(pool.held() + pool.cached() <= total);
            }
            for (holding, answer) in held.drain(..) {
                pool.release(holding, &answer);
            }
            prop_assert_eq!(pool.held(), 0);
        }
    }
}
