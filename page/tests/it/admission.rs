//! Who is let in, and what a browser is told.

use std::sync::Arc;

use domain::RunId;
use tracing::Level;

use super::world::*;

#[tokio::test]
async fn without_identities_this_machine_is_served_under_its_own_names_only() {
    let world = World::open();
    let run = world.submit(1).await.run;
    for path in ["/", "/workers", &path(&run)] {
        world.visit().get(path).await.expect(200);
        world.visit().host("127.0.0.1:7701").get(path).await.expect(200);
        world.visit().host("[::1]:7701").from("[::1]:50000").get(path).await.expect(200);
        // A name of somebody else that leads here: DNS rebinding.
        for host in ["rebound.example:7701", "localhost.example", "", "192.168.0.7:7701"] {
            world.visit().host(host).get(path).await.expect(403);
        }
        world.visit().from("192.168.0.7:50000").get(path).await.expect(403);
        // A proxy on this machine asks for somebody whom nobody knows.
        for header in ["forwarded", "via", "x-forwarded-for", "x-real-ip"] {
            let passed_on = world.visit().with(header, "203.0.113.9").get(path).await.expect(403);
            passed_on.shows(&["--page-url"]);
        }
        world.visit().from("192.168.0.7:50000").host("fleet.example").get(path).await.expect(403);
    }
    world.visit().get("/nothing").await.expect(404);
    world.visit().get("/runs/no-such-run").await.expect(404).shows(&["there is no run no-such-run"]);
}

#[tokio::test]
async fn a_browser_is_told_to_run_nothing_else_and_to_keep_nothing() {
    let world = World::guarded();
    let answers = [
        world.visit().get("/").await.expect(401),
        world.visit().get("/login").await.expect(200),
        world.visit().host("evil.example").get("/").await.expect(403),
        world.visit().post("/login", &[("token", "wrong")]).await.expect(401),
    ];
    for answer in answers {
        let header = |name: &str| answer.headers[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        for rule in [
            "default-src 'none'",
            "script-src 'self';",
            "style-src 'self';",
            "frame-ancestors 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(rule), "{policy}");
        }
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("x-frame-options"), "DENY");
        assert_eq!(header("cache-control"), "no-store");
        let inline = ["<style", " style=", " onclick=", "<script>", "javascript:"];
        assert!(!inline.iter().any(|part| answer.body.contains(part)), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_token_becomes_a_session_and_ends_with_it() {
    let world = World::guarded();
    let run = world.submit(1).await.run;
    let page = world.visit().get(&path(&run)).await.expect(401);
    page.shows(&["type=\"password\"", &format!("name=\"next\" value=\"{}\"", path(&run))]);
    assert!(!page.body.contains("two &lt;by"), "nothing of the run is shown");
    world.visit().get("/live").await.expect(401);
    world.visit().get("/workers").await.expect(401);

    let refused = world.visit().post("/login", &[("token", "nobody's")]).await.expect(401);
    refused.shows(&["This token is unknown."]);
    assert!(!refused.body.contains("nobody's"));
    world.visit().post("/login", &[("token", POOL)]).await.expect(403).shows(&["role reader or operator"]);

    let entered = world.visit().post("/login", &[("token", BOB), ("next", &path(&run))]).await.expect(303);
    assert_eq!(entered.headers["location"], path(&run));
    let cookie = entered.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly; SameSite=Strict; Max-Age="), "{cookie}");
    assert!(!cookie.contains(BOB) && !cookie.contains("Secure"), "{cookie}");
    let cookie = entered.cookie();
    let page = world.visit().with("cookie", &cookie).get(&path(&run)).await.expect(200);
    page.shows(&["two &lt;by&gt; two", ">bob<"]);
    world.visit().with("cookie", format!("{cookie}0")).get("/").await.expect(401);

    let token = page.form_token();
    world.visit().with("cookie", &cookie).post("/logout", &[("form_token", "x")]).await.expect(403);
    world.visit().with("cookie", &cookie).post("/logout", &[("form_token", &token)]).await.expect(303);
    world.visit().with("cookie", &cookie).get("/").await.expect(401);
    // A login leads to this page only.
    let away = world.visit().post("/login", &[("token", BOB), ("next", "//evil.example")]).await.expect(303);
    assert_eq!(away.headers["location"], "/");
}

#[tokio::test]
async fn other_machines_come_over_tls_and_their_cookie_goes_nowhere_else() {
    let world = World::guarded();
    let far = || world.visit().from("10.0.0.7:50000").host("fleet.example");
    far().get("/").await.expect(401);
    world.visit().from("10.0.0.7:50000").get("/").await.expect(403);
    let entered =
        far().with("origin", "https://fleet.example").post("/login", &[("token", ALICE)]).await.expect(303);
    let cookie = entered.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.starts_with("__Host-") && cookie.ends_with("; Secure"), "{cookie}");
    let cookie = entered.cookie();
    far().with("cookie", &cookie).get("/").await.expect(200);
    // Not under the name of a session without TLS.
    let bare = cookie.trim_start_matches("__Host-").to_owned();
    far().with("cookie", bare).get("/").await.expect(401);
    // Without identities, an address for other machines opens nothing.
    let open =
        World::with(proto::server::Identities::anyone(), Some("https://fleet.example".parse().unwrap()));
    open.visit().from("10.0.0.7:50000").host("fleet.example").get("/").await.expect(403);
}

/// The path of a command to a run.
fn command(run: &RunId) -> String {
    format!("{}/command", path(run))
}

#[tokio::test]
async fn the_audit_log_names_whom_a_proxy_asks_for_and_at_the_door_the_proxy() {
    let world = World::guarded();
    let run = world.submit(1).await.run;
    let line = |who: &str, from: &str, act: &str| [who, from, act].map(str::to_owned);
    // Who asks may write the header too; the proxy adds the machine that it sees.
    for (said, from) in [
        ("198.51.100.1, 203.0.113.9", "203.0.113.9 via 10.0.0.7"),
        ("[2001:db8::9]:4711", "2001:db8::9 via 10.0.0.7"),
        ("203.0.113.8:4711", "203.0.113.8 via 10.0.0.7"),
        ("198.51.100.1, unknown", "10.0.0.7"),
    ] {
        let far = || world.visit().from("10.0.0.7:50000").host("fleet.example").with("x-forwarded-for", said);
        let cookie = far().post("/login", &[("token", ALICE)]).await.expect(303).cookie();
        let token = far().with("cookie", &cookie).get(&path(&run)).await.expect(200).form_token();
        let fields = [("form_token", token.as_str()), ("action", "pause")];
        far().with("cookie", &cookie).post(&command(&run), &fields).await.expect(303);
        let noted = world.noted();
        let client = from.split(' ').next().unwrap();
        for expected in [line("alice", from, "login"), line("alice", client, "pause")] {
            assert!(noted.contains(&expected), "{expected:?} is missing in {noted:?}");
        }
        assert!(!noted.iter().any(|[_, from, _]| from.contains("198.51.100.1")), "{noted:?}");
    }
    // Of several lines, the proxy's is the last.
    let twice = world.visit().from("10.0.0.7:50000").host("fleet.example");
    let twice = twice.with("x-forwarded-for", "198.51.100.1").with("x-forwarded-for", "203.0.113.7");
    twice.post("/login", &[("token", ALICE)]).await.expect(303);
    assert!(world.noted().contains(&line("alice", "203.0.113.7 via 10.0.0.7", "login")));
}

#[tokio::test]
async fn what_is_refused_at_the_door_is_logged_with_the_machine_that_asked() {
    let world = World::guarded();
    let log = tempfile::NamedTempFile::new().unwrap();
    let lines = tracing_subscriber::fmt().with_ansi(false).with_writer(Arc::new(log.reopen().unwrap()));
    let _logging = tracing::subscriber::set_default(lines.with_max_level(Level::DEBUG).finish());
    // Nobody said that a proxy is there: what its header says is not believed.
    let near = world.visit().from("127.0.0.1:50000").with("x-forwarded-for", "203.0.113.9");
    near.get("/").await.expect(403);
    world.visit().from("10.0.0.8:50000").get("/").await.expect(403);
    let cookie = world.log_in(BOB).await;
    let foreign = world.visit().with("cookie", &cookie).with("origin", "https://evil.example");
    foreign.post("/logout", &[]).await.expect(403);
    let far = world.visit().from("10.0.0.7:50000").host("fleet.example");
    far.with("x-forwarded-for", "203.0.113.9").post("/login", &[("token", "nobody's")]).await.expect(401);
    let log = std::fs::read_to_string(log.path()).unwrap();
    for (who, from) in
        [("", "127.0.0.1"), ("", "10.0.0.8"), ("bob", "127.0.0.1"), ("", "203.0.113.9 via 10.0.0.7")]
    {
        let expected = format!("refused who={who:?} from={from:?} what=");
        assert!(log.contains(&expected), "{expected} is missing in {log}");
    }
}
