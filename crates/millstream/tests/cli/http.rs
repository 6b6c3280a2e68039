//! `millstream groups explain` and `plan`: what they ask of the admin HTTP interface and how they show what it says. Here it is a
//! stand-in; that the broker tells the truth is proved where it is told.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

use serde_json::{Value, json};

use super::rig::{Rig, millstream};

/// Answers one request, and gives what it was.
fn stand_in(status: u16, body: &Value) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address").to_string();
    let body = body.to_string();
    let answered = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a request");
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !request.windows(4).any(|window| window == b"\r\n\r\n") {
            let read = stream.read(&mut buffer).expect("a request");
            assert!(read > 0, "the request ends too early");
            request.extend_from_slice(&buffer[..read]);
        }
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes())).expect("it is read");
        let request = String::from_utf8(request).expect("text");
        request.lines().next().unwrap_or_default().to_owned()
    });
    (address, answered)
}

#[test]
fn the_journal_is_told_as_a_story() {
    let journal = json!({ "group": "a b", "now_ms": 1_700_000_060_000_i64, "events": [
        { "at_ms": 1_700_000_000_000_i64, "kind": "member-joined", "text": "app-1 joined: epoch 1 to 2", "waited_for": [] },
        { "at_ms": 1_700_000_001_500_i64, "kind": "stable", "text": "stable after 1.5 s",
          "waited_for": [{ "client_id": "app-1", "ms": 900 }] },
    ]});
    let (address, asked) = stand_in(200, &journal);
    let args = ["groups", "explain", "a b", "--since", "10m", "--limit", "5", "--http", &address];
    let text = millstream(&args).ok();
    assert_eq!(asked.join().expect("it was asked"), "GET /groups/a%20b/journal?since=600s&limit=5 HTTP/1.1");
    let expected = "2023-11-14 22:13:20.000  app-1 joined: epoch 1 to 2\n\
                    2023-11-14 22:13:21.500  stable after 1.5 s\n                         waited for app-1 0.9 s\n";
    assert_eq!(text, expected);
    let (address, _asked) = stand_in(200, &journal);
    assert_eq!(millstream(&["groups", "explain", "a b", "--json", "--http", &address]).json(), journal);
    let (address, _asked) = stand_in(200, &json!({ "group": "g", "events": [] }));
    assert_eq!(millstream(&["groups", "explain", "g", "--http", &address]).ok(), "Nothing happened to g.\n");
}

#[test]
fn a_plan_asks_with_all_of_its_changes_and_shows_before_and_after() {
    let plan = json!({
        "members": [
            { "member_id": "m1", "client_id": "app-1", "change": null, "before": { "active": ["0_0", "0_1"] },
              "after": { "active": ["0_0", "0_1"] }, "finally": { "active": ["0_0"], "standby": ["0_1"] } },
            { "member_id": "new-1", "client_id": null, "change": "added", "before": null,
              "after": { "active": [], "warmup": ["0_1"] }, "finally": { "active": ["0_1"] } },
        ],
        "moves": [{ "what": "0_1", "role": "active", "from": "m1", "to": "new-1" }],
        "restores": [{ "what": "0_1", "member_id": "new-1", "behind": 12 }],
        "problem": null, "text": ["1 task moves."],
    });
    let (address, asked) = stand_in(200, &plan);
    let args = [
        "groups",
        "plan",
        "g",
        "--add-members",
        "1",
        "--remove-member",
        "x/1",
        "--assignor",
        "balanced",
        "--set",
        "streams.num.standby.replicas=1",
        "--partitions",
        "in=48",
        "--http",
        &address,
    ];
    let text = millstream(&args).ok();
    let query =
        "add-members=1&remove-member=x%2F1&assignor=balanced&set=streams.num.standby.replicas%3D1&partitions=in%3D48";
    assert_eq!(asked.join().expect("it was asked"), format!("GET /groups/g/plan?{query} HTTP/1.1"));
    let expected = "\
1 task moves.

MEMBER  CLIENT  CHANGE  BEFORE    AFTER     IN THE END
m1      app-1   -       2 active  2 active  1 active, 1 standby
new-1   -       added   -         1 warmup  1 active

MOVES  AS      FROM  TO     RESTORES
0_1    active  m1    new-1  12 records
";
    assert_eq!(text, expected);
}

#[test]
fn refusals_of_the_http_interface_have_exit_codes() {
    for (status, code) in [(400, 2), (404, 4), (409, 1), (503, 3)] {
        let (address, _asked) = stand_in(status, &json!({ "error": "not so" }));
        millstream(&["groups", "explain", "g", "--http", &address]).failed(code, "not so");
    }
    let (address, _asked) = stand_in(200, &json!("hello"));
    millstream(&["groups", "explain", "g", "--http", &address]).failed(1, "is it the admin HTTP interface");
}

#[test]
fn the_address_comes_from_the_settings_of_the_broker() {
    let (address, asked) = stand_in(200, &json!({ "group": "g", "events": [] }));
    // The stand-in has the port, so the broker is told after its start; what it says is what counts.
    let rig = Rig::start();
    rig.cli("groups explain g").failed(1, "admin.http.listener");
    millstream(&["groups", "explain", "g", "--http", &address]).ok();
    asked.join().expect("it was asked");
}
