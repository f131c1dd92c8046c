//! The sessions of visitors who have logged in. A plain state machine: callers pass the time and the random names.

use std::collections::HashMap;
use std::io;
use std::time::Duration;

use domain::caller::Caller;
use domain::text::hex;
use rustix::rand::{GetRandomFlags, getrandom};
use sha2::{Digest, Sha256};

/// Sessions at once; a further one ends the one that was unused for longest.
pub(crate) const SESSIONS_MAX: usize = 1_000;

/// Sessions of one identity at once, so that one that logs in again and again ends its own sessions first.
pub(crate) const SESSIONS_PER_IDENTITY_MAX: usize = 20;

/// A session ends after this time.
pub(crate) const LIFE: Duration = Duration::from_secs(12 * 3600);

/// A session ends after this time without a request.
pub(crate) const IDLE: Duration = Duration::from_secs(2 * 3600);

/// Random bytes of a session's name, and of the token in its forms.
const TOKEN_BYTES: usize = 32;

/// The hash of a session's name: looking one up reveals nothing about how much of a name was right.
pub(crate) type SessionId = [u8; 32];

/// Everybody who has logged in.
#[derive(Default)]
pub(crate) struct Sessions(HashMap<SessionId, Session>);

struct Session {
    caller: Caller,
    form_token: String,
    begun: Duration,
    used: Duration,
}

impl Sessions {
    /// Begins a session under this name, with this token in its forms.
    pub(crate) fn begin(&mut self, name: &str, form_token: String, caller: Caller, now: Duration) {
        self.forget(now);
        let own = |session: &Session| session.caller.name() == caller.name();
        if self.0.values().filter(|session| own(session)).count() >= SESSIONS_PER_IDENTITY_MAX {
            self.end_oldest(own);
        }
        if self.0.len() >= SESSIONS_MAX {
            self.end_oldest(|_| true);
        }
        self.0.insert(id(name), Session { caller, form_token, begun: now, used: now });
    }

    fn end_oldest(&mut self, among: impl Fn(&Session) -> bool) {
        let found =
            self.0.iter().filter(|(_, session)| among(session)).min_by_key(|(_, session)| session.used);
        if let Some(id) = found.map(|(id, _)| *id) {
            self.0.remove(&id);
        }
    }

    /// The session of this name: its id, its caller and the token of its forms. Marks it as used.
    pub(crate) fn of(&mut self, name: &str, now: Duration) -> Option<(SessionId, Caller, String)> {
        let id = id(name);
        let session = self.0.get_mut(&id)?;
        if !session.holds(now) {
            self.0.remove(&id);
            return None;
        }
        session.used = now;
        Some((id, session.caller.clone(), session.form_token.clone()))
    }

    /// Whether a session still exists. Marks it as used.
    pub(crate) fn goes_on(&mut self, id: &SessionId, now: Duration) -> bool {
        self.0.get_mut(id).filter(|session| session.holds(now)).map(|session| session.used = now).is_some()
    }

    pub(crate) fn end(&mut self, id: &SessionId) {
        self.0.remove(id);
    }

    fn forget(&mut self, now: Duration) {
        self.0.retain(|_, session| session.holds(now));
    }
}

impl Session {
    fn holds(&self, now: Duration) -> bool {
        now < self.begun + LIFE && now < self.used + IDLE && !self.caller.is_revoked()
    }
}

fn id(name: &str) -> SessionId {
    Sha256::digest(name.as_bytes()).into()
}

/// Compares two tokens in a time that does not depend on where they differ.
pub(crate) fn same(one: &str, other: &str) -> bool {
    id(one) == id(other)
}

/// A random name of [`TOKEN_BYTES`] bytes in hexadecimal digits.
pub(crate) fn random_token() -> io::Result<String> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    // The kernel returns this few bytes at once, or fails.
    let got = getrandom(&mut bytes, GetRandomFlags::empty())?;
    if got == TOKEN_BYTES {
        Ok(hex(bytes))
    } else {
        Err(io::Error::other("the system gave too few random numbers"))
    }
}

#[cfg(test)]
mod tests {
    use domain::caller::CallerRole;

    use super::*;

    fn caller(name: &str) -> Caller {
        Caller::new(name, [CallerRole::Reader], None)
    }

    #[test]
    fn a_session_ends_by_age_by_silence_and_with_its_rights() {
        let (mut sessions, hour) = (Sessions::default(), Duration::from_secs(3600));
        let alice = caller("alice");
        sessions.begin("a", "f".into(), alice.clone(), Duration::ZERO);
        assert!(sessions.of("b", Duration::ZERO).is_none());
        for hours in 1..12 {
            assert!(sessions.of("a", hour * hours).is_some(), "{hours}");
        }
        assert!(sessions.of("a", hour * 12).is_none(), "it is too old");
        sessions.begin("a", "f".into(), alice.clone(), Duration::ZERO);
        assert!(sessions.of("a", hour * 2).is_none(), "nobody used it");
        sessions.begin("a", "f".into(), alice.clone(), Duration::ZERO);
        let (id, ..) = sessions.of("a", hour).unwrap();
        assert!(sessions.goes_on(&id, hour * 2) && sessions.of("a", hour * 3).is_some());
        alice.revoke();
        assert!(!sessions.goes_on(&id, hour) && sessions.of("a", hour).is_none());
    }

    #[test]
    fn sessions_are_bounded_and_one_identity_ends_its_own() {
        let (mut sessions, at) = (Sessions::default(), Duration::from_secs);
        sessions.begin("bob", "f".into(), caller("bob"), at(0));
        for n in 0..100 {
            sessions.begin(&format!("a{n}"), "f".into(), caller("alice"), at(n));
        }
        assert_eq!(sessions.0.len(), SESSIONS_PER_IDENTITY_MAX + 1);
        assert!(sessions.of("bob", at(100)).is_some() && sessions.of("a99", at(100)).is_some());
        for n in 0..2 * SESSIONS_MAX as u64 {
            sessions.begin(&format!("{n}"), "f".into(), caller(&n.to_string()), at(200 + n));
        }
        assert_eq!(sessions.0.len(), SESSIONS_MAX);
        assert!(same("x", "x") && !same("x", "X"));
        assert_ne!(random_token().unwrap(), random_token().unwrap());
    }
}
