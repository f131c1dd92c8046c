//! How soon a matrix could be over on some nodes, whoever planned it: the greatest of four lower bounds.

use std::time::Duration;

use crate::pool::view::Pool;

/// A pool with what it has to do, for the bound.
#[derive(Clone, Copy, Debug)]
pub struct PoolWork<'a> {
    pub pool: &'a Pool,
    pub dialogues: f64,
}

impl PoolWork<'_> {
    /// Hours of one server that does all of it, loading included.
    fn hours(&self) -> f64 {
        hours(self.pool.load) + self.dialogues / self.pool.rate / 3600.0
    }

    /// Hours until it is over, with as many servers as it may have.
    fn longest(&self) -> f64 {
        let servers = f64::from(self.pool.servers_max.max(1));
        hours(self.pool.load) + self.dialogues / self.pool.rate / servers / 3600.0
    }
}

/// A lower bound of the time until everything is done on so many nodes with so many GPUs each.
///
/// It is the greatest of: GPU-hours over GPUs; the longest model; for each number of GPUs, the hours of parts that take as many
/// over the places of that size; for each number of nodes, the hours of servers that span as many over how many of these fit.
pub fn bound(work: &[PoolWork<'_>], nodes: u32, gpus_per_node: u32) -> Duration {
    let work: Vec<&PoolWork<'_>> = work.iter().filter(|work| work.dialogues > 0.0).collect();
    let sum = |of: &dyn Fn(&PoolWork<'_>) -> u32| -> f64 {
        work.iter().map(|work| work.hours() * f64::from(of(work))).sum()
    };
    let per = |hours: f64, places: u32| if places == 0 { 0.0 } else { hours / f64::from(places) };
    let all = per(sum(&|work| work.pool.server_gpus()), nodes * gpus_per_node);
    let longest = work.iter().map(|work| work.longest()).fold(0.0, f64::max);
    let sizes = (1..=gpus_per_node).map(|size| {
        per(sum(&|work| work.pool.parts * (work.pool.gpus / size)), nodes * (gpus_per_node / size))
    });
    // Two parts that take more than half of a node each never share one.
    let alone = |work: &PoolWork<'_>| if 2 * work.pool.gpus > gpus_per_node { work.pool.parts } else { 0 };
    let spans = (2..=nodes).map(|span| per(sum(&|work| alone(work) / span), nodes / span));
    let greatest = sizes.chain(spans).fold(all.max(longest), f64::max);
    Duration::from_secs_f64(3600.0 * greatest)
}

fn hours(duration: Duration) -> f64 {
    duration.as_secs_f64() / 3600.0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(parts: u32, gpus: u32) -> Pool {
        Pool { name: "p".to_owned(), parts, gpus, servers_max: 1, load: Duration::ZERO, rate: 1.0 }
    }

    /// The bound of servers of an hour each, as parts and GPUs of a part, in hours.
    fn hours_of(servers: &[(u32, u32)], nodes: u32) -> f64 {
        let pools: Vec<Pool> = servers.iter().map(|(parts, gpus)| pool(*parts, *gpus)).collect();
        let work: Vec<PoolWork<'_>> = pools.iter().map(|pool| PoolWork { pool, dialogues: 3600.0 }).collect();
        bound(&work, nodes, 8).as_secs_f64() / 3600.0
    }

    #[test]
    fn the_greatest_of_the_bounds_counts() {
        assert_eq!(hours_of(&[], 2), 0.0);
        assert_eq!(hours_of(&[(1, 1)], 2), 1.0, "the longest model");
        assert_eq!(hours_of(&[(1, 4); 6], 2), 1.5, "GPU-hours over GPUs");
        assert_eq!(hours_of(&[(1, 5); 3], 2), 1.5, "of five GPUs, one fits on a node");
        assert_eq!(hours_of(&[(2, 8); 3], 3), 3.0, "of two nodes, one fits on three");
        let parallel = Pool { servers_max: 4, load: Duration::from_secs(1800), ..pool(1, 1) };
        let work = [PoolWork { pool: &parallel, dialogues: 7200.0 }];
        assert_eq!(bound(&work, 1, 8), Duration::from_secs(3600), "half an hour each, and to load");
    }
}
