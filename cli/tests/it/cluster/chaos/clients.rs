//! People who give commands about one benchmark at once, at all coordinators, and what became of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::fleet::Fleet;
use super::plan::{Fault, Planned};
use super::servers::EXTRACTS;
use super::work::{Submitted, Work};
use crate::harness::process::kgfleet;

/// After so long somebody resumes what others may have paused or cancelled, so that there is work.
const RESUMED_AFTER: Duration = Duration::from_secs(2);

/// How long a command may take. Reached only where something is broken.
const COMMAND_MAX: Duration = Duration::from_secs(90);

/// What somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Deed {
    Pause,
    Resume,
    Cancel,
    /// To so many iterations.
    Extend(u64),
    Retry,
    Remove,
    /// A new benchmark: one of several submissions, which have this seed.
    Submit(u64),
    Archive,
    Verify,
}

impl Deed {
    fn verb(&self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Cancel => "cancel",
            Self::Extend(_) => "submit --extend",
            Self::Retry => "retry",
            Self::Remove => "rm",
            Self::Submit(_) => "submit",
            Self::Archive => "archive",
            Self::Verify => "verify",
        }
    }
}

/// A command that runs.
struct Client {
    deed: Deed,
    /// The benchmark.
    of: String,
    submitted: Option<Submitted>,
    /// An archive: its run and its file.
    archive: Option<(String, PathBuf)>,
    child: Child,
    begun: Instant,
    /// How often records were restored when it began.
    age: u64,
}

/// See the module.
#[derive(Default)]
pub struct Clients {
    running: Vec<Client>,
    /// Benchmarks that are to be resumed, and when.
    resumed: Vec<(Instant, String)>,
    /// By verb: commands that were carried out, and others.
    told: BTreeMap<&'static str, [u64; 2]>,
    /// The names that submissions of one seed were told.
    names: BTreeMap<u64, BTreeSet<String>>,
    /// Benchmarks whose removal somebody has asked for.
    pub removals: BTreeSet<String>,
    started: u64,
    /// Submissions of one configuration at once that began a run of their own. They may where the first one ended meanwhile, or
    /// an older copy of the records does not have it.
    pub several: u64,
    /// What went wrong, in words.
    pub wrong: Vec<String>,
}

impl Clients {
    /// Lets several people give commands at once; when that is over.
    pub fn race(
        &mut self,
        planned: &Planned,
        work: &mut Work,
        fleet: &Fleet,
        age: u64,
        now: Instant,
    ) -> Option<Instant> {
        if planned.fault == Fault::SubmissionsRace {
            if !work.has_room() {
                return None;
            }
            let submitted = work.draw();
            for client in 0..3 {
                let deed = Deed::Submit(submitted.seed);
                self.start(deed, "", Some(&submitted), fleet, planned.pick + client, age, now);
            }
            return Some(now);
        }
        let of = work.pick(planned.pick)?;
        let known = work.known.get_mut(&of)?;
        let submitted = known.submitted.clone();
        let mut more = || {
            known.extensions += 1;
            Deed::Extend(submitted.as_ref().map_or(0, Submitted::iterations) + known.extensions)
        };
        let deeds = match planned.fault {
            Fault::PausesRace => vec![Deed::Pause, Deed::Resume, Deed::Pause],
            Fault::CancelsRace => vec![Deed::Cancel, Deed::Resume, Deed::Retry],
            Fault::ExtensionsRace => vec![more(), more(), Deed::Pause],
            Fault::RetriesRace => vec![Deed::Retry, Deed::Retry, Deed::Resume],
            Fault::RemovalsRace => vec![Deed::Remove, Deed::Resume, more(), Deed::Remove],
            Fault::ArchivesRace => vec![Deed::Archive, Deed::Retry],
            other => unreachable!("{other} is no race of commands"),
        };
        for (client, deed) in deeds.into_iter().enumerate() {
            if matches!(deed, Deed::Extend(_)) && submitted.is_none() {
                continue;
            }
            self.start(deed, &of, submitted.as_ref(), fleet, planned.pick + client, age, now);
        }
        let ends = now + RESUMED_AFTER;
        self.resumed.push((ends, of));
        Some(ends)
    }

    #[expect(clippy::too_many_arguments, reason = "a client is made of that many things")]
    fn start(
        &mut self,
        deed: Deed,
        of: &str,
        submitted: Option<&Submitted>,
        fleet: &Fleet,
        at: usize,
        age: u64,
        now: Instant,
    ) {
        self.started += 1;
        let path = fleet.at(&format!("client-{}", self.started));
        let mut command = kgfleet();
        let mut archive = None;
        match &deed {
            Deed::Extend(iterations) => {
                let configuration = submitted.map(|submitted| submitted.configuration(*iterations));
                fs::write(path.with_extension("toml"), configuration.unwrap_or_default()).unwrap();
                command.arg("submit").arg(path.with_extension("toml")).args(["--extend", of]);
            }
            Deed::Submit(_) => {
                let configuration =
                    submitted.map(|submitted| submitted.configuration(submitted.iterations()));
                fs::write(path.with_extension("toml"), configuration.unwrap_or_default()).unwrap();
                command.arg("submit").arg(path.with_extension("toml"));
            }
            Deed::Remove => {
                self.removals.insert(of.to_owned());
                command.args(["rm", of, "--force"]);
            }
            Deed::Archive => {
                let is_judged = submitted.is_some_and(|submitted| submitted.is_judged);
                let run = if is_judged { format!("{of}.ask.{EXTRACTS}.1") } else { of.to_owned() };
                let file = path.with_extension("tar.zst");
                command.args(["archive", &run, "--out"]).arg(&file);
                archive = Some((run, file));
            }
            deed => {
                command.args([deed.verb(), of]);
            }
        }
        command.args(["--fleet", &fleet.url(at)]);
        let child = spawn(&mut command);
        let (of, submitted) = (of.to_owned(), submitted.cloned());
        self.running.push(Client { deed, of, submitted, archive, child, begun: now, age });
    }

    /// Hears the answers. `age` is how often records were restored.
    pub fn tend(&mut self, work: &mut Work, fleet: &Fleet, age: u64, now: Instant) {
        let (due, later): (Vec<_>, Vec<_>) = self.resumed.drain(..).partition(|(at, _)| *at <= now);
        self.resumed = later;
        for (_, of) in due {
            if work.known.get(&of).is_some_and(|known| !known.is_removed) {
                self.start(Deed::Resume, &of, None, fleet, self.started as usize, age, now);
            }
        }
        for mut client in std::mem::take(&mut self.running) {
            if client.child.try_wait().unwrap().is_some() {
                self.hear(client, work, age, now);
            } else if now > client.begun + COMMAND_MAX {
                let _ = client.child.kill();
                if let Some(known) = work.known.get_mut(&client.of).filter(|_| client.deed == Deed::Remove) {
                    known.may_be_removed = true;
                }
                let said = client.child.wait_with_output().unwrap();
                let said = String::from_utf8_lossy(&said.stderr).into_owned();
                self.wrong.push(format!("{} {} does not end: {said}", client.deed.verb(), client.of));
            } else {
                self.running.push(client);
            }
        }
    }

    fn hear(&mut self, client: Client, work: &mut Work, age: u64, now: Instant) {
        let Client { deed, of, submitted, archive, child, .. } = client;
        let output = child.wait_with_output().unwrap();
        let [out, said] =
            [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
        let (code, is_done) = (output.status.code(), output.status.success());
        self.told.entry(deed.verb()).or_default()[usize::from(!is_done)] += 1;
        let is_documented = match deed {
            Deed::Verify => is_done || code == Some(1) && out.contains("the log is sound"),
            _ => matches!(code, Some(0 | 2 | 3)),
        };
        if !is_documented || said.contains("panicked") {
            self.wrong.push(format!("{} {of} ended with {code:?}:\n{out}\n{said}", deed.verb()));
        }
        if !is_done {
            // It may have been carried out all the same.
            if let Some(known) = work.known.get_mut(&of).filter(|_| deed == Deed::Remove) {
                known.may_be_removed = true;
            }
            return;
        }
        // What was agreed to before records were restored may be lost with them.
        let counts = age == client.age;
        match deed {
            Deed::Extend(iterations) => {
                if let Some(known) = work.known.get_mut(&of).filter(|_| counts) {
                    known.iterations = known.iterations.max(iterations);
                }
            }
            Deed::Remove => {
                if let Some(known) = work.known.get_mut(&of).filter(|_| counts) {
                    known.is_removed = true;
                }
            }
            Deed::Submit(seed) => {
                let name = out.trim();
                work.add(name, submitted);
                let names = self.names.entry(seed).or_default();
                if counts && names.insert(name.to_owned()) && names.len() > 1 {
                    self.several += 1;
                }
            }
            Deed::Archive => {
                let Some((run, file)) = archive else { return };
                let mut command = kgfleet();
                command.arg("verify").arg(&file);
                let child = spawn(&mut command);
                let deed = Deed::Verify;
                self.running.push(Client {
                    deed,
                    of: run.clone(),
                    submitted: None,
                    archive: Some((run, file)),
                    child,
                    begun: now,
                    age: 0,
                });
            }
            Deed::Verify => {
                if let Some((_, file)) = archive {
                    let _ = fs::remove_file(file);
                }
            }
            Deed::Pause | Deed::Resume | Deed::Cancel | Deed::Retry => {}
        }
    }

    /// Whether nobody waits for an answer.
    pub fn are_done(&self) -> bool {
        self.running.is_empty()
    }

    /// How many commands were carried out, and how many were not, by verb.
    pub fn table(&self) -> String {
        let words = self.told.iter().map(|(verb, [done, not])| format!("{verb} {done} + {not}"));
        words.collect::<Vec<_>>().join(", ")
    }
}

fn spawn(command: &mut Command) -> Child {
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}
