//! A simulated vLLM in the test's own process, behind a socket, so that the test sees every question and decides when it is
//! answered.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use tokio::runtime::Runtime;
use vllm_sim::{
    AnswerConfig, FaultKind, FaultPlan, FaultRule, FaultWhen, ModelConfig, SimAsk, SimConfig, SimHandle,
    Simulator,
};

/// The name of the served model.
pub const MODEL: &str = "sim";

/// A running server. It stops when dropped.
pub struct SimServer {
    handle: SimHandle,
    gate: Arc<QuestionGate>,
    // Last: the server's tasks live on it.
    _runtime: Runtime,
}

/// Counts questions and, while closed, holds them back.
#[derive(Default)]
pub struct QuestionGate {
    state: Mutex<QuestionGateState>,
    changed: Condvar,
}

#[derive(Default)]
struct QuestionGateState {
    closed: bool,
    /// Answers until the gate closes by itself.
    left: Option<usize>,
    held: usize,
    /// Seeds of the conversations that were asked about, once per round.
    asked: Vec<u64>,
}

impl QuestionGate {
    fn state(&self) -> MutexGuard<'_, QuestionGateState> {
        self.state.lock().unwrap()
    }

    fn pass(&self, seed: u64) {
        let mut state = self.state();
        state.asked.push(seed);
        state.held += 1;
        self.changed.notify_all();
        match &mut state.left {
            Some(0) => (state.closed, state.left) = (true, None),
            Some(left) => *left -= 1,
            None => {}
        }
        if state.closed {
            // The thread says that it will wait, so that the server's other tasks move to another one.
            state =
                tokio::task::block_in_place(|| self.changed.wait_while(state, |state| state.closed).unwrap());
        }
        state.held -= 1;
    }

    /// Answers no question from now on.
    pub fn close(&self) {
        self.state().closed = true;
    }

    /// Answers this many more questions, and then none.
    pub fn close_after(&self, answers: usize) {
        self.state().left = Some(answers);
    }

    /// Answers all questions, those that wait first.
    pub fn open(&self) {
        let mut state = self.state();
        (state.closed, state.left) = (false, None);
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until so many questions wait for their answer.
    pub fn until_held(&self, questions: usize) {
        let state = self.changed.wait_while(self.state(), |state| state.held < questions).unwrap();
        drop(state);
    }

    /// The sampling seeds of the conversations asked about since the last call, one per question. A seed is a function of
    /// run seed and dialogue, so it tells which dialogue it was.
    pub fn take_asked(&self) -> Vec<u64> {
        std::mem::take(&mut self.state().asked)
    }
}

impl Drop for SimServer {
    fn drop(&mut self) {
        // Questions that still wait would keep the runtime from ending.
        self.gate.open();
    }
}

impl SimServer {
    /// A server of [`MODEL`] whose every answer is some text.
    pub fn start() -> Self {
        Self::with(SimConfig::new(vec![ModelConfig::new(MODEL)]))
    }

    /// The same with faults.
    pub fn with_faults(rules: Vec<FaultRule>) -> Self {
        let mut config = SimConfig::new(vec![ModelConfig::new(MODEL)]);
        config.faults = FaultPlan { seed: 0, rules };
        Self::with(config)
    }

    /// The same, which never answers the first request of a conversation whose prompt contains this text: a run against
    /// it stops there, and one that goes on with it later gets through.
    pub fn stuck_at(prompt_contains: &str) -> Self {
        let first = FaultRule::new(FaultWhen::NthOfConversation(1), FaultKind::Hang);
        Self::with_faults(vec![FaultRule { prompt_contains: Some(prompt_contains.to_owned()), ..first }])
    }

    /// Requests that met a fault so far.
    pub fn faults(&self) -> u64 {
        self.handle.stats().faults
    }

    /// The same with a key.
    pub fn with_key(key: &str) -> Self {
        let mut config = SimConfig::new(vec![ModelConfig::new(MODEL)]);
        config.api_key = Some(key.to_owned());
        Self::with(config)
    }

    /// The same at this address, which another one has left.
    pub fn at(address: SocketAddr) -> Self {
        Self::serve(SimConfig::new(vec![ModelConfig::new(MODEL)]), address)
    }

    pub fn with(config: SimConfig) -> Self {
        Self::serve(config, SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))
    }

    fn serve(mut config: SimConfig, address: SocketAddr) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let gate = Arc::new(QuestionGate::default());
        let passing = Arc::clone(&gate);
        let answers = move |ask: &SimAsk<'_>| {
            passing.pass(u64::try_from(ask.seed).unwrap());
            format!("http://example.org/people/person-{:08}", ask.seed % 7)
        };
        // The names are served in this order; only the first is asked.
        config.models.push(ModelConfig { answers: AnswerConfig::Echo {}, ..ModelConfig::new("sim-other") });
        let handle = runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind(address).await.unwrap();
            Simulator::new(config).unwrap().answer_model(MODEL, Arc::new(answers)).serve(listener).unwrap()
        });
        Self { handle, gate, _runtime: runtime }
    }

    /// Base URL for `--endpoint`.
    pub fn url(&self) -> String {
        self.handle.base_url()
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.handle.addr()
    }

    /// Where its questions pass.
    pub fn gate(&self) -> &QuestionGate {
        &self.gate
    }

    /// `run` against this server: these tasks, so many iterations, so many dialogues at once.
    pub fn run_arguments(&self, tasks: &[&str], iterations: u32, concurrency: u32) -> Vec<String> {
        let text = format!(
            "run --endpoint {} --model {MODEL} --iterations {iterations} --concurrency {concurrency} --evaluators 1",
            self.url()
        );
        let mut arguments: Vec<String> = text.split(' ').map(str::to_owned).collect();
        arguments.extend(tasks.iter().flat_map(|task| ["--task".to_owned(), (*task).to_owned()]));
        arguments
    }
}
