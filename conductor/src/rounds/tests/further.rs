//! Further servers of a pool that fail while another one serves.

use super::*;

const HOUR: i64 = 60 * MINUTE;

/// A pool of up to four servers with work for a day, whose first server serves since second 30.
fn with_one_that_serves() -> Ground {
    let mut ground = Ground::new(4).pool("a", 1, 1);
    let annotations = &mut ground.cron_jobs[0]["metadata"]["annotations"];
    annotations["kgfleet/estimate"] =
        json!(annotations["kgfleet/estimate"].as_str().unwrap().replace(r#""servers":1"#, r#""servers":4"#));
    ground.need("a").dialogues = 24 * 3_600;
    assert_eq!(ground.round(0), ["create bench-a-1"]);
    ground.pod("bench-a-1", 0, "n1", 0);
    ground.works("bench-a-1-0", WorkerPhase::Serving, Some(30));
    ground
}

/// Looks every twenty seconds, and lets every further server fail at its next look; when each was made.
fn made_and_failed(ground: &mut Ground, from: i64, until: i64) -> Vec<i64> {
    let mut made = Vec::new();
    for now in (from..until).step_by(20) {
        for order in ground.round(now) {
            let job = order.strip_prefix("create ").unwrap().to_owned();
            ground.pod(&job, 0, "n2", now);
            ground.fails_with(&job, now + 1, 3);
            made.push(now);
            assert!(made.len() < 10, "it is tried again and again: {made:?}");
        }
    }
    made
}

#[test]
fn a_further_server_that_fails_is_tried_again_after_5_15_and_45_minutes_and_then_given_up() {
    for restarts in [false, true] {
        let mut ground = with_one_that_serves();
        let mut made = made_and_failed(&mut ground, 40, HOUR / 2);
        if restarts {
            ground.restart();
        }
        made.extend(made_and_failed(&mut ground, HOUR / 2, 3 * HOUR));
        let waits: Vec<i64> = made.windows(2).map(|two| (two[1] - two[0]) / MINUTE).collect();
        assert_eq!(waits, [5, 15, 45], "{made:?}");
        let row = ground.look(3 * HOUR).rows.remove(0);
        assert!(row.is_given_up && row.failures == 4, "{row:?}");
        assert_eq!(row.words(), "1 serving, gets no further server");
        assert_eq!(row.wait, None, "its first server serves, so nothing waits for one");
    }
}

#[test]
fn a_further_server_that_came_to_serve_begins_the_count_anew_and_what_serves_is_still_foretold() {
    let mut ground = with_one_that_serves();
    assert_eq!(made_and_failed(&mut ground, 40, 2 * HOUR).len(), 4);
    // Nobody knows when the pool is mended, but its server goes on.
    let forecast = ground.look(2 * HOUR).forecast;
    assert!(forecast.unwrap().ends_at > at(20 * HOUR), "{forecast:?}");
    ground.cron_jobs[0]["metadata"]["annotations"]["kgfleet/retry"] = json!(text(2 * HOUR));
    let created = ground.round(2 * HOUR + 10);
    let job = created[0].strip_prefix("create ").unwrap();
    ground.pod(job, 0, "n2", 2 * HOUR + 10);
    ground.works(&format!("{job}-0"), WorkerPhase::Serving, Some(30));
    ground.round(2 * HOUR + 60);
    ground.workers.retain(|worker| worker.worker.as_str() == "bench-a-1-0");
    ground.fails_with(job, 2 * HOUR + 70, 3);
    assert_eq!(ground.round(2 * HOUR + 80), NOTHING);
    assert_eq!(ground.round(2 * HOUR + 70 + 5 * MINUTE).len(), 1);
}
