//! Confinement of evaluation processes beyond resource limits: files, TCP, other processes.
//!
//! Resource limits already keep an answer from opening anything. These are the second line of defence: no new
//! privileges, Landlock (no file system, no TCP, no signals to others) and seccomp (no sockets, programs or
//! processes). A kernel that lacks one of them confines less, which is reported and not an error.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope as Scoped,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// The newest requested Landlock version; an older kernel does what it can.
const LANDLOCK: ABI = ABI::V6;

/// What stands in the list of what is in force.
pub(super) const WHOLE_LANDLOCK: &str = "Landlock";
pub(super) const PART_OF_LANDLOCK: &str = "Landlock (in part)";
pub(super) const SECCOMP: &str = "seccomp";

/// System calls that judging never makes: to reach, start or inspect other processes, and complex kernel interfaces.
const FORBIDDEN: [i64; 38] = [
    libc::SYS_socket,
    libc::SYS_socketpair,
    libc::SYS_connect,
    libc::SYS_bind,
    libc::SYS_listen,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_openat2,
    libc::SYS_open_by_handle_at,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_setns,
    libc::SYS_unshare,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_kexec_load,
    libc::SYS_memfd_create,
    libc::SYS_setuid,
];

/// What to confine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// The whole process.
    Process,
    /// The calling thread, to test what the kernel supports.
    Thread,
}

/// Confines this process for the rest of its life and returns what is in force. Call it when nothing needs to be
/// opened any more, and before the limit on open files, because Landlock needs a file descriptor.
pub fn confine() -> Vec<String> {
    // Threads count as processes; the judging threads already exist. The superuser is exempt from this limit.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let mut in_force: Vec<String> =
        setrlimit(Resource::Nproc, none).ok().map(|()| "no new processes".to_owned()).into_iter().collect();
    in_force.extend(confined(Extent::Process));
    in_force
}

/// What [`confine`] can enforce on this machine, tested on a temporary thread.
pub fn available() -> Vec<String> {
    let tried = std::thread::spawn(|| confined(Extent::Thread)).join().unwrap_or_default();
    std::iter::once("resource limits".to_owned()).chain(tried).collect()
}

fn confined(extent: Extent) -> Vec<String> {
    [landlocked().unwrap_or_default(), filtered(extent).unwrap_or_default()].into_iter().flatten().collect()
}

fn landlocked() -> Result<Option<String>, RulesetError> {
    let status = Ruleset::default()
        .handle_access(AccessFs::from_all(LANDLOCK))?
        .handle_access(AccessNet::from_all(LANDLOCK))?
        .scope(Scoped::from_all(LANDLOCK))?
        .create()?
        .restrict_self()?;
    Ok(match status.ruleset {
        RulesetStatus::FullyEnforced => Some(WHOLE_LANDLOCK.to_owned()),
        RulesetStatus::PartiallyEnforced => Some(PART_OF_LANDLOCK.to_owned()),
        RulesetStatus::NotEnforced => None,
    })
}

fn filtered(extent: Extent) -> Result<Option<String>, Box<dyn std::error::Error>> {
    let rules = FORBIDDEN.iter().map(|call| (*call, Vec::new())).collect::<BTreeMap<_, _>>();
    let refuse = SeccompAction::Errno(libc::EPERM as u32);
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, std::env::consts::ARCH.try_into()?)?;
    let program = BpfProgram::try_from(filter)?;
    match extent {
        Extent::Process => seccompiler::apply_filter_all_threads(&program)?,
        Extent::Thread => seccompiler::apply_filter(&program)?,
    }
    Ok(Some(SECCOMP.to_owned()))
}
