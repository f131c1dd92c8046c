//! The states of a run in the queue.

domain::named! {
    /// The state of a run in the queue: what the queue does with its units. People see `domain::control::RunPhase`
    /// instead, which has one phase more: only the coordinator that fills the queue knows that a run is being prepared.
    #[derive(Default)]
    pub enum RunState {
        /// Units are leased out.
        #[default]
        Active = "active",
        /// No unit is leased out; current leases continue and their records are accepted.
        Paused = "paused",
        /// Stopped by hand; workers drop the dialogues in progress. Late records are accepted.
        Cancelled = "cancelled",
        /// Complete.
        Finished = "finished",
    }
}

impl RunState {
    /// Whether a run may change from this state to `to`. Any state may become active again: resuming a cancelled run
    /// and retrying the failures of a finished one are ordinary. Keeping the state is always allowed, so that a
    /// repeated call succeeds.
    pub fn may_become(self, to: Self) -> bool {
        self == to
            || match to {
                Self::Active => true,
                Self::Paused => self == Self::Active,
                Self::Cancelled | Self::Finished => matches!(self, Self::Active | Self::Paused),
            }
    }
}
