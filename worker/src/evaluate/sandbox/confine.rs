//! What the kernel takes away from a process that judges, beside limits: files, TCP, other processes.
//!
//! Limits already keep an answer from opening anything. These are the second wall, for an error in the first: no new
//! privileges, Landlock (no file system, no TCP, no signals to others) and seccomp (no sockets, programs or processes).
//! A kernel that lacks one of them takes away less, which is told and no error.

use std::collections::BTreeMap;

use landlock::{
    ABI, Access, AccessFs, AccessNet, Ruleset, RulesetAttr, RulesetError, RulesetStatus, Scope as Scoped,
};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};

/// The newest Landlock that is asked for; a kernel with an older one does what it can.
const LANDLOCK: ABI = ABI::V6;

/// Calls that judging never makes: to reach others, to become or begin another process, to look into one, and large doors
/// into the kernel.
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

/// How much of the process is confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    /// The whole, for the rest of its life.
    Process,
    /// The calling thread: to see what the kernel can do.
    Thread,
}

/// Confines this process for the rest of its life and says what is in force. To be called when nothing needs to be opened
/// any more, and before the limit on open files: Landlock needs one.
pub fn confine() -> Vec<String> {
    // Threads count as processes; the judging ones are there already. The superuser is not bound by it.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let mut in_force: Vec<String> =
        setrlimit(Resource::Nproc, none).ok().map(|()| "no new processes".to_owned()).into_iter().collect();
    in_force.extend(confined(Extent::Process));
    in_force
}

/// What [`confine`] would put in force on this machine, tried on a thread that ends with it.
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
        RulesetStatus::FullyEnforced => Some("Landlock".to_owned()),
        RulesetStatus::PartiallyEnforced => Some("Landlock (in part)".to_owned()),
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
    Ok(Some("seccomp".to_owned()))
}
