use std::sync::atomic::{AtomicUsize, Ordering};

use domain::{DialogueKey, Message, RetryAdvice, Sampling};
use models::{RetryPolicy, complete_with_retry};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::*;

/// What a server says when the test lets it.
enum Said {
    Token,
    Answer(&'static str),
    Failure(FailureCause),
}

/// A server that says what the test tells it to say.
struct PlayedServer {
    identity: ModelIdentity,
    /// Of each call in turn; further calls are never answered.
    script: Mutex<Vec<UnboundedReceiver<Said>>>,
    asked: AtomicUsize,
}

#[async_trait::async_trait]
impl ChatModel for PlayedServer {
    async fn complete(&self, request: ChatRequest) -> Result<ChatReply, CallError> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let said = self.script.lock().unwrap().pop();
        let Some(mut said) = said else { return std::future::pending().await };
        loop {
            match said.recv().await {
                Some(Said::Token) => request.progress.token(),
                Some(Said::Answer(text)) => return Ok(ChatReply::text(text)),
                Some(Said::Failure(cause)) => return Err(CallError::new(cause, RetryAdvice::No, "no")),
                None => return std::future::pending().await,
            }
        }
    }

    fn identity(&self) -> &ModelIdentity {
        &self.identity
    }
}

/// A server with one call to script. The line is closed once the call is over.
fn server(name: &str) -> (Arc<AskedServer>, Arc<PlayedServer>, UnboundedSender<Said>) {
    let (tell, said) = unbounded_channel();
    let identity = ModelIdentity { connector: "played", requested: "m".to_owned(), endpoint: None };
    let played =
        Arc::new(PlayedServer { identity, script: Mutex::new(vec![said]), asked: AtomicUsize::new(0) });
    let model: Arc<dyn ChatModel> = played.clone();
    (Arc::new(AskedServer { model, name: name.into(), made_at: None }), played, tell)
}

fn request() -> ChatRequest {
    ChatRequest {
        messages: Arc::from([Message::user("?")]),
        sampling: Sampling::default(),
        seed: Some(7),
        deadline: std::time::Duration::from_secs(60),
        key: DialogueKey { model: "m".into(), task: "t".into(), iteration: 0 },
        round: 1,
        progress: Progress::default(),
        traceparent: None,
    }
}

/// What came of one round at two servers, of which the second is named at once.
struct Outcome {
    reply: Result<String, FailureCause>,
    /// The server that answered.
    at: String,
    /// Name and end of each call.
    calls: Vec<(String, HedgeEnd, Option<FailureCause>)>,
    first_tokens: usize,
}

/// Asks; `script` gets the lines to both servers, once both have been asked.
async fn asked<F: Future<Output = ()>>(
    script: impl FnOnce(UnboundedSender<Said>, UnboundedSender<Said>) -> F,
) -> Outcome {
    let ((first, _, tell_first), (second, played, tell_second)) = (server("a"), server("b"));
    let (told, request) = (SecondServer::default(), request());
    let (progress, policy) = (request.progress.clone(), RetryPolicy::none());
    let asking = Asking::new(&first, &told, || Timestamp::UNIX_EPOCH);
    let test = async {
        let sent = progress.silent_since().expect("the first server is asked");
        told.tell(sent, second);
        while played.asked.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        script(tell_first, tell_second).await;
    };
    let call = complete_with_retry(&asking, request, &policy, || Timestamp::UNIX_EPOCH);
    let ((reply, _), ()) = tokio::join!(call, test);
    let (at, calls) = asking.ended();
    assert!(calls.iter().all(|call| call.round == 1));
    Outcome {
        reply: reply.map(|reply| reply.answer.text).map_err(|error| error.cause),
        at: at.name.to_string(),
        calls: calls.into_iter().map(|call| (call.server, call.end, call.cause)).collect(),
        first_tokens: progress.take_first_tokens().len(),
    }
}

fn call(server: &str, end: HedgeEnd) -> (String, HedgeEnd, Option<FailureCause>) {
    (server.to_owned(), end, None)
}

fn failed(server: &str, cause: FailureCause) -> (String, HedgeEnd, Option<FailureCause>) {
    (server.to_owned(), HedgeEnd::Failed, Some(cause))
}

#[tokio::test]
async fn who_begins_first_is_waited_for_and_the_other_call_is_dropped_before_it_says_anything() {
    let ended = asked(|first, second| async move {
        second.send(Said::Token).unwrap();
        first.closed().await;
        second.send(Said::Answer("two")).unwrap();
    })
    .await;
    assert_eq!((ended.reply.unwrap().as_str(), ended.at.as_str()), ("two", "b"));
    assert_eq!(ended.calls, [call("a", HedgeEnd::Dropped), call("b", HedgeEnd::Answered)]);
    assert_eq!(ended.first_tokens, 1, "the dialogue waited so long for its first token");
}

#[tokio::test]
async fn the_first_server_may_begin_before_the_second_one() {
    let ended = asked(|first, second| async move {
        first.send(Said::Token).unwrap();
        second.closed().await;
        first.send(Said::Answer("one")).unwrap();
    })
    .await;
    assert_eq!((ended.reply.unwrap().as_str(), ended.at.as_str()), ("one", "a"));
    assert_eq!(ended.calls, [call("a", HedgeEnd::Answered), call("b", HedgeEnd::Dropped)]);
}

#[tokio::test]
async fn an_answer_without_any_token_counts_as_begun() {
    let ended = asked(|_, second| async move { second.send(Said::Answer("")).unwrap() }).await;
    assert_eq!((ended.reply.unwrap().as_str(), ended.at.as_str()), ("", "b"));
}

#[tokio::test]
async fn who_fails_leaves_the_answer_to_the_other_one() {
    let ended = asked(|first, second| async move {
        second.send(Said::Failure(FailureCause::Overloaded)).unwrap();
        second.closed().await;
        first.send(Said::Answer("one")).unwrap();
    })
    .await;
    assert_eq!((ended.reply.unwrap().as_str(), ended.at.as_str()), ("one", "a"));
    assert_eq!(ended.calls, [call("a", HedgeEnd::Answered), failed("b", FailureCause::Overloaded)]);
    let ended = asked(|first, second| async move {
        first.send(Said::Failure(FailureCause::Connection)).unwrap();
        first.closed().await;
        second.send(Said::Answer("two")).unwrap();
    })
    .await;
    assert_eq!((ended.reply.unwrap().as_str(), ended.at.as_str()), ("two", "b"));
    assert_eq!(ended.calls, [failed("a", FailureCause::Connection), call("b", HedgeEnd::Answered)]);
}

#[tokio::test]
async fn where_both_fail_the_round_fails_and_both_are_told() {
    let ended = asked(|first, second| async move {
        first.send(Said::Failure(FailureCause::Connection)).unwrap();
        first.closed().await;
        second.send(Said::Failure(FailureCause::Server)).unwrap();
    })
    .await;
    assert_eq!((ended.reply, ended.at.as_str()), (Err(FailureCause::Server), "a"));
    assert_eq!(ended.calls, [failed("a", FailureCause::Connection), failed("b", FailureCause::Server)]);
}

#[tokio::test]
async fn a_second_server_that_was_meant_for_another_call_is_not_asked() {
    let ((first, _, tell_first), (second, played, _line)) = (server("a"), server("b"));
    let (told, request, policy) = (SecondServer::default(), request(), RetryPolicy::none());
    let progress = request.progress.clone();
    let asking = Asking::new(&first, &told, || Timestamp::UNIX_EPOCH);
    let test = async {
        let sent = progress.silent_since().expect("the first server is asked");
        told.tell(sent - std::time::Duration::from_secs(1), second);
        tell_first.send(Said::Answer("one")).unwrap();
    };
    let call = complete_with_retry(&asking, request, &policy, || Timestamp::UNIX_EPOCH);
    let ((reply, _), ()) = tokio::join!(call, test);
    assert_eq!(reply.unwrap().answer.text, "one");
    let (at, calls) = asking.ended();
    assert_eq!((&*at.name, calls.len(), played.asked.load(Ordering::Relaxed)), ("a", 0, 0));
}

#[tokio::test]
async fn a_call_that_has_begun_to_be_answered_is_not_made_again() {
    let ((first, _, tell_first), (second, played, _line)) = (server("a"), server("b"));
    let (told, request, policy) = (SecondServer::default(), request(), RetryPolicy::none());
    let progress = request.progress.clone();
    let asking = Asking::new(&first, &told, || Timestamp::UNIX_EPOCH);
    let test = async {
        let sent = progress.silent_since().expect("the first server is asked");
        tell_first.send(Said::Token).unwrap();
        progress.begun().await;
        told.tell(sent, second);
        tokio::task::yield_now().await;
        tell_first.send(Said::Answer("one")).unwrap();
    };
    let call = complete_with_retry(&asking, request, &policy, || Timestamp::UNIX_EPOCH);
    let ((reply, _), ()) = tokio::join!(call, test);
    assert_eq!(reply.unwrap().answer.text, "one");
    assert_eq!((asking.ended().1.len(), played.asked.load(Ordering::Relaxed)), (0, 0));
}
