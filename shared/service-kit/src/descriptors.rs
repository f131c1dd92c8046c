//! File descriptors of this process: one for each connection and open file.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files to the highest that this process may have, and returns it; `None` if there is none.
/// The usual limit of 1024 is for programs that use `select`.
///
/// # Errors
/// The kernel refuses, and the limit is what it was.
pub fn raise_limit() -> Result<Option<u64>, Errno> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })?;
    Ok(maximum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_raised_to_the_highest_allowed() {
        let maximum = getrlimit(Resource::Nofile).maximum;
        // Other tests of this process have enough.
        let lower = maximum.map_or(1 << 16, |most| most - 1);
        setrlimit(Resource::Nofile, Rlimit { current: Some(lower), maximum }).unwrap();
        assert_eq!(raise_limit(), Ok(maximum));
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
    }
}
