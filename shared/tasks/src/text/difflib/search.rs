//! The search for equal runs: longest first, then on both sides of it.

use std::collections::HashMap;
use std::hash::Hash;

/// Items that both sequences share: `a[self.a..][..self.len] == b[self.b..][..self.len]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MatchingRun {
    /// Start in `a`.
    pub(super) a: usize,
    /// Start in `b`.
    pub(super) b: usize,
    /// Number of items.
    pub(super) len: usize,
}

/// A part of both sequences in which a run is searched; ends are exclusive.
#[derive(Clone, Copy)]
struct Window {
    a_start: usize,
    a_end: usize,
    b_start: usize,
    b_end: usize,
}

/// All runs that the rule matches, in order; those found so far when `steps_max` is reached.
pub(super) fn matching_runs<T: Copy + Eq + Hash>(a: &[T], b: &[T], steps_max: u64) -> Vec<MatchingRun> {
    let mut search = Search::new(a, b, steps_max);
    let mut runs = Vec::new();
    let mut windows = vec![Window { a_start: 0, a_end: a.len(), b_start: 0, b_end: b.len() }];
    while let Some(window) = windows.pop() {
        let Some(run) = search.longest_run(window) else { break };
        if run.len == 0 {
            continue;
        }
        runs.push(run);
        let before = Window { a_end: run.a, b_end: run.b, ..window };
        let after = Window { a_start: run.a + run.len, b_start: run.b + run.len, ..window };
        windows.extend([before, after].into_iter().filter(|window| !window.is_empty()));
    }
    runs.sort_unstable();
    runs
}

impl Window {
    fn is_empty(&self) -> bool {
        self.a_start >= self.a_end || self.b_start >= self.b_end
    }
}

/// The number of items of `a` that do not occur in `b`.
const NOWHERE: u32 = u32::MAX;

/// The two sequences, with the data shared by all searches.
struct Search {
    /// The items of `a` as numbers of items of `b`, or [`NOWHERE`].
    a: Vec<u32>,
    /// The items of `b`, numbered by first occurrence.
    b: Vec<u32>,
    /// For each item number, where its `positions` start; one more entry marks the end of the last.
    starts: Vec<u32>,
    /// The positions of unpopular items in `b`, ascending for each item.
    positions: Vec<u32>,
    /// For each position of `b`, the last row with a match there, and the length of the run that ends with it. Row numbers
    /// continue over all searches, so that nothing has to be cleared between them.
    run_ends: Vec<(u32, u32)>,
    /// The last row used.
    row: u32,
    steps_left: u64,
}

impl Search {
    fn new<T: Copy + Eq + Hash>(a: &[T], b: &[T], steps_max: u64) -> Self {
        let mut numbers: HashMap<T, u32> = HashMap::new();
        let mut counts: Vec<u32> = Vec::new();
        let b: Vec<u32> = b
            .iter()
            .map(|item| {
                let number = *numbers.entry(*item).or_insert(counts.len() as u32);
                if number as usize == counts.len() {
                    counts.push(0);
                }
                counts[number as usize] += 1;
                number
            })
            .collect();
        let a = a.iter().map(|item| numbers.get(item).copied().unwrap_or(NOWHERE)).collect();
        let count_max = if b.len() >= 200 { b.len() / 100 + 1 } else { b.len() };
        let mut starts = Vec::with_capacity(counts.len() + 1);
        let mut total = 0;
        for count in &mut counts {
            if *count as usize > count_max {
                *count = 0;
            }
            starts.push(total);
            total += *count;
        }
        starts.push(total);
        let mut next = starts.clone();
        let mut positions = vec![0; total as usize];
        for (position, &number) in b.iter().enumerate() {
            let number = number as usize;
            if counts[number] > 0 {
                positions[next[number] as usize] = position as u32;
                next[number] += 1;
            }
        }
        let run_ends = vec![(0, 0); b.len()];
        Self { a, b, starts, positions, run_ends, row: 0, steps_left: steps_max }
    }

    /// The longest run in a window, empty if there is none; `None` if the steps are used up.
    fn longest_run(&mut self, window: Window) -> Option<MatchingRun> {
        let mut best = MatchingRun { a: window.a_start, b: window.b_start, len: 0 };
        // Skip one row number between two searches: the entries of one must not look like the previous row of the next.
        self.row = self.row.checked_add(1)?;
        for a_position in window.a_start..window.a_end {
            self.row = self.row.checked_add(1)?;
            let positions = self.positions_of(self.a[a_position], &window);
            self.steps_left = self.steps_left.checked_sub(1 + positions.len() as u64)?;
            // In descending order, the entry to the left is still that of the previous row. Accepting a run as long as
            // the best of this row then prefers the leftmost, like accepting only longer ones in ascending order.
            let mut best_of_row = MatchingRun { a: 0, b: 0, len: best.len + 1 };
            let mut found = false;
            for index in positions.rev() {
                let position = self.positions[index] as usize;
                let len = match position.checked_sub(1).map(|left| self.run_ends[left]) {
                    Some((row, len)) if row + 1 == self.row => len + 1,
                    _ => 1,
                };
                self.run_ends[position] = (self.row, len);
                let len = len as usize;
                if len >= best_of_row.len {
                    found = true;
                    best_of_row = MatchingRun { a: a_position + 1 - len, b: position + 1 - len, len };
                }
            }
            if found {
                best = best_of_row;
            }
        }
        Some(self.extended(best, &window))
    }

    /// The positions of an item in the window's part of `b`, as a range of `positions`.
    fn positions_of(&self, item: u32, window: &Window) -> std::ops::Range<usize> {
        if item == NOWHERE {
            return 0..0;
        }
        let (start, end) = (self.starts[item as usize] as usize, self.starts[item as usize + 1] as usize);
        let positions = &self.positions[start..end];
        let first = positions.partition_point(|&position| (position as usize) < window.b_start);
        let last = positions.partition_point(|&position| (position as usize) < window.b_end);
        start + first..start + last
    }

    /// The run with equal items added at both ends, popular ones among them. A run without items is extended to
    /// the right from the start of the window.
    fn extended(&self, mut run: MatchingRun, window: &Window) -> MatchingRun {
        while run.a > window.a_start && run.b > window.b_start && self.a[run.a - 1] == self.b[run.b - 1] {
            run = MatchingRun { a: run.a - 1, b: run.b - 1, len: run.len + 1 };
        }
        while run.a + run.len < window.a_end
            && run.b + run.len < window.b_end
            && self.a[run.a + run.len] == self.b[run.b + run.len]
        {
            run.len += 1;
        }
        run
    }
}
