//! What the sandbox lacks on a machine, in words for people.

use super::confine::{self, PART_OF_LANDLOCK, SECCOMP, WHOLE_LANDLOCK};

/// What the sandbox depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SandboxHost {
    /// The operating system, as [`std::env::consts::OS`] names it.
    pub system: &'static str,
    /// The release of its kernel, as in `/proc/sys/kernel/osrelease`.
    pub kernel: String,
    /// What is in force, see [`confine::available`].
    pub in_force: Vec<String>,
}

impl SandboxHost {
    /// This machine.
    pub fn here() -> Self {
        Self {
            system: std::env::consts::OS,
            kernel: rustix::system::uname().release().to_string_lossy().into_owned(),
            in_force: confine::available(),
        }
    }

    /// What is missing and what that means, in a line; `None` where everything is in force.
    ///
    /// A process that judges can open nothing, because it may have no more than the three files that it has. Whoever makes it do
    /// what it was not written for can close one of these first.
    pub fn lacks(&self) -> Option<String> {
        let has = |name: &str| self.in_force.iter().any(|found| found == name);
        let (whole, part, seccomp) = (has(WHOLE_LANDLOCK), has(PART_OF_LANDLOCK), has(SECCOMP));
        let (missing, reach) = match (whole, part, seccomp) {
            // Before Linux 6.12 Landlock does not cover signals, which is no news for most machines; docs/running.md names it.
            (true, _, true) | (false, true, true) => return None,
            (true, _, false) => ("no seccomp", "use the network, but for TCP"),
            (false, true, false) => {
                ("only a part of Landlock and no seccomp", "use the network and signal your other processes")
            }
            (false, false, true) => {
                ("no Landlock", "read and write your files and signal your other processes")
            }
            (false, false, false) => (
                "neither Landlock nor seccomp",
                "read and write your files, use the network, start programs and signal your other processes",
            ),
        };
        Some(format!(
            "sandbox: {} has {missing}: an answer that takes over the process that judges it could {reach}",
            self.name()
        ))
    }

    /// What the machine is called in messages. WSL 2 is a Linux of Microsoft's, WSL 1 a part of Windows that answers for one.
    fn name(&self) -> String {
        let kernel = self.kernel.to_ascii_lowercase();
        match self.system {
            "linux" if kernel.contains("wsl2") || kernel.contains("microsoft-standard") => {
                format!("WSL 2 ({})", self.kernel)
            }
            "linux" if kernel.contains("microsoft") => format!("WSL 1 ({})", self.kernel),
            "linux" => format!("Linux {}", self.kernel),
            system => system.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(system: &'static str, kernel: &str, in_force: &[&str]) -> SandboxHost {
        let in_force = ["resource limits"].iter().chain(in_force).map(|name| (*name).to_owned()).collect();
        SandboxHost { system, kernel: kernel.to_owned(), in_force }
    }

    fn lack(system: &'static str, kernel: &str, in_force: &[&str]) -> String {
        host(system, kernel, in_force).lacks().unwrap()
    }

    #[test]
    fn where_everything_is_in_force_nothing_is_said() {
        for kernel in ["6.12.0-amd64", "6.18.20.1-microsoft-standard-WSL2"] {
            assert_eq!(host("linux", kernel, &[WHOLE_LANDLOCK, SECCOMP]).lacks(), None);
        }
    }

    #[test]
    fn what_a_kernel_lacks_is_said_with_what_an_answer_could_do() {
        assert_eq!(
            lack("linux", "5.10.0-8", &[SECCOMP]),
            "sandbox: Linux 5.10.0-8 has no Landlock: an answer that takes over the process that judges it could read \
             and write your files and signal your other processes"
        );
        let of = |in_force: &[&str]| lack("linux", "6.8.0-45-generic", in_force);
        assert_eq!(host("linux", "6.8.0-45-generic", &[PART_OF_LANDLOCK, SECCOMP]).lacks(), None);
        assert!(of(&[PART_OF_LANDLOCK]).contains("a part of Landlock and no seccomp"));
        let open = of(&[WHOLE_LANDLOCK]);
        assert!(
            open.contains("has no seccomp") && open.ends_with("could use the network, but for TCP"),
            "{open}"
        );
        let nothing = of(&[]);
        assert!(
            nothing.contains("neither Landlock nor seccomp") && nothing.contains("start programs"),
            "{nothing}"
        );
    }

    #[test]
    fn windows_below_linux_and_other_systems_are_named() {
        let wsl = lack("linux", "6.6.87.2-microsoft-standard-WSL2", &[PART_OF_LANDLOCK]);
        assert!(
            wsl.starts_with("sandbox: WSL 2 (6.6.87.2-microsoft-standard-WSL2) has only a part"),
            "{wsl}"
        );
        let old = lack("linux", "4.19.84-microsoft-standard", &[SECCOMP]);
        assert!(old.starts_with("sandbox: WSL 2 (4.19.84-microsoft-standard) has no Landlock"), "{old}");
        let imitated = lack("linux", "4.4.0-19041-Microsoft", &[]);
        assert!(imitated.starts_with("sandbox: WSL 1 (4.4.0-19041-Microsoft) has neither"), "{imitated}");
        assert!(lack("macos", "24.1.0", &[]).starts_with("sandbox: macos has neither Landlock nor seccomp"));
    }

    #[test]
    fn this_machine_tells_of_the_limits_that_hold_everywhere() {
        let here = SandboxHost::here();
        assert_eq!(here.in_force[0], "resource limits");
        assert!(!here.kernel.is_empty());
    }
}
