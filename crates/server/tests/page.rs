//! The live page in a real browser: it shows a Kafka Streams application that is scaled, while it happens. Skipped, loudly,
//! where there is no Chromium; `MILLSTREAM_REQUIRE_CLIENTS=1` makes that a failure. `MILLSTREAM_SCREENSHOT=FILE` writes a picture.

#[path = "page/app.rs"]
mod app;
#[path = "page/browser.rs"]
mod browser;
mod common;

use std::time::{Duration, Instant};

use app::{APP, Thread};
use browser::Browser;
use common::{TestBroker, http_get};
use wire::KStr;
use wire::messages::create_topics_request::{CreatableTopic, CreateTopicsRequest};
use wire::messages::incremental_alter_configs_request::{
    AlterConfigsResource, AlterableConfig, IncrementalAlterConfigsRequest,
};

const SETTINGS: &[(&str, &str)] = &[
    ("admin.http.listener", "127.0.0.1:0"),
    ("group.streams.initial.rebalance.delay.ms", "0"),
    ("group.streams.assignment.interval.ms", "0"),
];
const PARTITIONS: i32 = 6;
/// Records that a copy of state restores from one heartbeat to the next.
const RESTORE: i64 = 1_500;

async fn prepare(broker: &TestBroker) {
    let mut admin = broker.connect().await;
    let topic = CreatableTopic {
        name: "orders".into(),
        num_partitions: PARTITIONS,
        replication_factor: 1,
        ..Default::default()
    };
    let request = CreateTopicsRequest { topics: vec![topic], timeout_ms: 10_000, ..Default::default() };
    assert_eq!(admin.call(7, &request).await.topics[0].error_code, 0);
    let set = |name: &str, value: &str| AlterableConfig {
        name: KStr::copy(name),
        config_operation: 0,
        value: Some(KStr::copy(value)),
    };
    let configs = vec![set("streams.num.standby.replicas", "1"), set("streams.acceptable.recovery.lag", "1000")];
    let resource = AlterConfigsResource { resource_type: 32, resource_name: APP.into(), configs };
    let request = IncrementalAlterConfigsRequest { resources: vec![resource], validate_only: false };
    let response = admin.call(1, &request).await.responses.remove(0);
    assert_eq!(response.error_code, 0, "{:?}", response.error_message);
}

/// Lets the application run until the page says what is wanted.
async fn until(browser: &mut Browser, threads: &mut [Thread], what: &str, expression: &str) {
    let started = Instant::now();
    loop {
        for thread in threads.iter_mut() {
            thread.beat(RESTORE).await;
        }
        // The browser's pipe blocks; the broker has other threads.
        if tokio::task::block_in_place(|| browser.evaluate(expression)) == true {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(60), "{what} is not seen: {}", browser_text(browser));
        tokio::time::sleep(Duration::from_millis(40)).await;
    }
}

fn browser_text(browser: &mut Browser) -> String {
    browser.evaluate("document.body.innerText").as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_page_shows_an_application_being_scaled() {
    let broker = TestBroker::start(SETTINGS).await;
    for (path, part) in [("/", "<title>Millstream</title>"), ("/page.js", "EventSource"), ("/page.css", ".timeline")] {
        let answer = http_get(&broker, path).await;
        assert!(answer.status == 200 && answer.body.contains(part), "{path}");
    }
    let Some(program) = browser::find() else {
        let required = std::env::var_os("MILLSTREAM_REQUIRE_CLIENTS").is_some_and(|value| value == "1");
        assert!(!required, "no Chromium is installed");
        eprintln!("SKIPPED: no Chromium is installed, so nobody has looked at the page");
        return;
    };
    prepare(&broker).await;
    let mut threads = vec![Thread::new(&broker, 1).await, Thread::new(&broker, 2).await];
    let address = broker.running.admin_addresses()[0];
    let url = format!("http://{address}/#/{APP}");
    let mut browser = tokio::task::block_in_place(|| Browser::open(&program, &url, 1360, 1000));

    let members = |count: usize| format!("document.getElementById('members-count')?.textContent === '{count}'");
    let stable = "document.getElementById('state')?.textContent === 'Stable'";
    until(&mut browser, &mut threads, "two members", &members(2)).await;
    let all = format!("document.getElementById('active-count')?.textContent === '{}' && {stable}", 2 * PARTITIONS);
    until(&mut browser, &mut threads, "all tasks", &all).await;
    assert_eq!(threads.iter().map(Thread::active).sum::<usize>(), 2 * PARTITIONS as usize);
    let standbys = browser.evaluate("document.querySelectorAll('.task.standby').length");
    assert_eq!(standbys, PARTITIONS, "one standby for each stateful task");
    let drawn = browser.evaluate("document.querySelectorAll('.topology rect.sub').length");
    assert_eq!(drawn, 2, "both subtopologies are drawn");

    // A third instance comes: nobody reloads the page.
    browser.evaluate("window.untouched = true");
    threads.push(Thread::new(&broker, 3).await);
    until(&mut browser, &mut threads, "three members", &members(3)).await;
    let told = "[...document.querySelectorAll('.timeline li[data-kind=\"member-joined\"]')]\
                .filter((li) => li.textContent.includes('orders-app-3')).length === 1";
    until(&mut browser, &mut threads, "the journal's entry", told).await;
    let warming = "[...document.querySelectorAll('.task.warmup')]\
                   .some((task) => parseInt(task.style.getPropertyValue('--done')) >= 30)";
    until(&mut browser, &mut threads, "a warm-up that is on its way", warming).await;
    if let Some(path) = std::env::var_os("MILLSTREAM_SCREENSHOT") {
        std::fs::write(path, browser.screenshot()).expect("the picture is written");
    }
    let done = format!("{stable} && document.querySelectorAll('.task.warmup').length === 0");
    until(&mut browser, &mut threads, "the end of all warm-ups", &done).await;
    let balanced = "[...document.querySelectorAll('.member')].every((member) => \
                    member.querySelectorAll('.task:not(.standby):not(.warmup):not(.coming)').length === 4)";
    until(&mut browser, &mut threads, "four tasks for each", balanced).await;
    assert_eq!(browser.evaluate("window.untouched"), true, "the page was not loaded again");

    // On a phone nothing is wider than the screen.
    let phone = serde_json::json!({ "width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": true });
    browser.call("Emulation.setDeviceMetricsOverride", phone);
    let fits = browser.evaluate("document.documentElement.scrollWidth <= 390");
    assert_eq!(fits, true, "the page is {} wide", browser.evaluate("document.documentElement.scrollWidth"));
    let phone_picture = std::env::var_os("MILLSTREAM_SCREENSHOT_PHONE");
    if let Some(path) = phone_picture {
        std::fs::write(path, browser.screenshot()).expect("the picture is written");
    }
}
