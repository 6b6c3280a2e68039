// The live page: what groups there are, who runs what in one of them, and why that changed.
// Everything comes from the routes of docs/http-api.md; nothing is loaded from elsewhere.
"use strict";

const GROUPS_EVERY_MS = 3000;
const GROUP_EVERY_MS = 2000;
const TIMELINE = 200;

const state = { groups: [], group: null, detail: null, events: [], fresh: new Set(), error: null };
const byId = (id) => document.getElementById(id);

// An element with properties and children; texts are never parsed as HTML.
function el(name, props, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(props || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "class") node.className = value;
    else if (key === "style") for (const [name, text] of Object.entries(value)) node.style.setProperty(name, text);
    else node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

function svg(name, props, ...children) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(props || {})) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

async function ask(path) {
  const answer = await fetch(path, { cache: "no-store" });
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.error || answer.statusText);
  return value;
}

const number = (n) => (n === null || n === undefined ? "–" : n.toLocaleString("en"));
function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 1000) return ms + " ms";
  if (ms < 60000) return (ms / 1000).toFixed(1) + " s";
  if (ms < 3600000) return Math.floor(ms / 60000) + " min";
  return ms < 86400000 ? Math.floor(ms / 3600000) + " h" : Math.floor(ms / 86400000) + " d";
}
const chosen = () => (location.hash.startsWith("#/") ? decodeURIComponent(location.hash.slice(2)) : null);
const path = (group) => "groups/" + encodeURIComponent(group);

// ---------------------------------------------------------------- groups

function drawGroups() {
  const wanted = byId("search").value.toLowerCase();
  const shown = state.groups.filter((group) => group.group.toLowerCase().includes(wanted));
  byId("groups").replaceChildren(...shown.map((group) =>
    el("li", {}, el("a", { href: "#/" + encodeURIComponent(group.group), "aria-current": group.group === state.group ? "page" : null },
      el("div", { class: "name" }, group.group),
      el("div", { class: "about" }, el("span", { class: "pill " + group.state }, group.state), group.protocol,
        el("span", {}, group.members + (group.members === 1 ? " member" : " members")))))));
}

async function loadGroups() {
  try {
    state.groups = (await ask("groups")).groups;
    state.error = null;
  } catch (error) {
    state.error = error.message;
  }
  drawGroups();
  if (!state.group) {
    if (state.groups.length === 1 && !location.hash) location.hash = "#/" + encodeURIComponent(state.groups[0].group);
    else drawMain();
  }
}

// ---------------------------------------------------------------- one group

let loading = false;
let again = false;
async function loadGroup() {
  if (!state.group) return;
  if (loading) { again = true; return; }
  loading = true;
  const group = state.group;
  try {
    const detail = await ask(path(group));
    if (group === state.group) { state.detail = detail; state.error = null; }
  } catch (error) {
    if (group === state.group) { state.detail = null; state.error = error.message; }
  }
  loading = false;
  drawMain();
  if (again) { again = false; setTimeout(loadGroup, 200); }
}

async function choose() {
  state.group = chosen();
  state.detail = null;
  state.events = [];
  drawGroups();
  if (!state.group) return drawMain();
  document.title = state.group + " – Millstream";
  const group = state.group;
  loadGroup();
  try {
    const journal = await ask(path(group) + "/journal?limit=" + TIMELINE);
    if (group === state.group) { state.events = journal.events; drawMain(); }
  } catch { /* the group itself says what is wrong */ }
}

function drawMain() {
  const main = byId("main");
  if (!state.group) {
    const text = state.groups.length > 0 ? "Choose a group to see who runs what, and why it rebalanced."
      : "There is no group yet. As soon as an application connects, it shows up here.";
    main.replaceChildren(el("p", { class: "empty" }, state.error || text));
    return;
  }
  const detail = state.detail;
  if (!detail) {
    const rest = state.events.length > 0 ? timeline() : null;
    main.replaceChildren(el("div", { class: "head" }, el("h1", {}, state.group)), el("p", { class: "empty" }, state.error || "…"), ...[rest].filter(Boolean));
    return;
  }
  const scroll = document.querySelector(".timeline") ? document.querySelector(".timeline").scrollTop : 0;
  const left = el("div", {}, members(detail), detail.topology ? topology(detail) : null, lag(detail));
  main.replaceChildren(heading(detail), tiles(detail), el("div", { class: "columns" }, left, timeline()));
  document.querySelector(".timeline").scrollTop = scroll;
  state.fresh.clear();
}

function heading(detail) {
  return el("div", { class: "head" }, el("h1", {}, detail.group), el("span", { class: "pill " + detail.state, id: "state" }, detail.state),
    el("span", { class: "pill" }, detail.protocol), detail.assignor ? el("span", { class: "pill" }, detail.assignor) : null);
}

function tiles(detail) {
  const count = (role) => detail.members.reduce((sum, member) => sum + member.assigned[role].length, 0);
  const lags = detail.lag.filter((lag) => lag.records !== null);
  const oldest = Math.max(...lags.map((lag) => lag.age_ms || 0), 0);
  const streams = detail.protocol === "streams";
  const tile = (value, text, id) => el("div", { class: "tile" }, el("b", { id }, value), el("span", {}, text));
  return el("div", { class: "tiles" }, tile(number(detail.members.length), "members", "members-count"),
    tile(number(count("active")), streams ? "active tasks" : "partitions", "active-count"),
    streams ? tile(number(count("standby")) + " / " + number(count("warmup")), "standbys / warm-ups") : null,
    tile(number(detail.epoch), detail.protocol === "classic" ? "generation" : "epoch"),
    tile(lags.length ? number(lags.reduce((sum, lag) => sum + lag.records, 0)) : "–", "records behind"),
    tile(lags.length ? duration(oldest) : "–", "oldest waiting record"));
}

function members(detail) {
  const streams = detail.protocol === "streams";
  const processes = new Map();
  for (const member of detail.members) {
    const key = member.process_id || member.member_id;
    if (!processes.has(key)) processes.set(key, []);
    processes.get(key).push(member);
  }
  const box = (group) => {
    const first = group[0];
    const known = first.instance_id || first.client_id || first.member_id;
    const where = [first.host, first.endpoint, first.rack && "rack " + first.rack].filter(Boolean).join(" · ");
    return el("section", { class: "process" }, el("header", {}, el("b", {}, known), where),
      ...group.map((member) => el("div", { class: "member" },
        el("div", { class: "id", title: member.member_id }, member.member_id + presence(member)), tasks(member))));
  };
  const legend = (cls, text) => el("span", {}, el("i", { class: cls }), text);
  return el("section", { class: "card" }, el("h2", {}, "Who runs what",
    el("small", {}, streams ? processes.size + (processes.size === 1 ? " process" : " processes") : ""),
    el("span", { class: "legend" }, legend("active", streams ? "active" : "owned"), streams ? legend("standby", "standby") : null,
      streams ? legend("warmup", "warm-up") : null, legend("coming", "on its way"))),
    processes.size ? el("div", { class: "processes" }, ...[...processes.values()].map(box)) : el("p", { class: "none" }, "Nobody: the group is empty."));
}

/** A static member that went away (epoch -2) keeps its work until its session ends. */
function presence(member) {
  if (member.epoch !== -2) return " · epoch " + member.epoch;
  return " · away" + (member.session_left_ms === null ? "" : ", held for " + duration(member.session_left_ms));
}

function tasks(member) {
  const offsets = new Map((member.offsets || []).map((offset) => [offset.task, offset]));
  const chips = [];
  const chip = (task, cls, title, done) =>
    chips.push(el("span", { class: "task " + cls, title: task + ": " + title, style: done === null ? {} : { "--done": done + "%" } }, task));
  for (const task of member.assigned.active) {
    const stays = member.target.active.includes(task);
    chip(task, stays ? "" : "going", stays ? "active" : "active, to be given up", null);
  }
  for (const task of member.target.active) if (!member.assigned.active.includes(task)) chip(task, "coming", "on its way here", null);
  for (const role of ["warmup", "standby"]) {
    for (const task of member.assigned[role]) {
      const known = offsets.get(task);
      const behind = known && known.end !== null && known.offset !== null ? Math.max(known.end - known.offset, 0) : null;
      const done = behind !== null && known.end > 0 ? Math.round((100 * (known.end - behind)) / known.end) : null;
      chip(task, role, role + (behind === null ? "" : ", " + number(behind) + " records behind"), role === "warmup" ? done || 0 : null);
    }
  }
  return el("div", { class: "tasks" }, ...(chips.length ? chips : [el("span", { class: "none" }, "idle")]));
}

function lag(detail) {
  if (!detail.lag.length) return null;
  const topics = new Map();
  for (const lag of detail.lag) {
    const sum = topics.get(lag.topic) || { partitions: 0, records: 0, age: null };
    sum.partitions += 1;
    sum.records += lag.records || 0;
    if (lag.age_ms !== null) sum.age = Math.max(sum.age || 0, lag.age_ms);
    topics.set(lag.topic, sum);
  }
  const most = Math.max(...[...topics.values()].map((sum) => sum.records), 1);
  const rows = [...topics].map(([topic, sum]) => el("tr", {}, el("td", {}, topic), el("td", { class: "number" }, number(sum.partitions)),
    el("td", { class: "number" }, number(sum.records)), el("td", { class: "number" }, duration(sum.age)),
    el("td", {}, el("div", { class: "bar", style: { "--part": (100 * sum.records) / most + "%" } }, el("i", {})))));
  const head = el("tr", {}, el("th", {}, "topic"), el("th", { class: "number" }, "partitions"), el("th", { class: "number" }, "records behind"),
    el("th", { class: "number" }, "oldest"), el("th", {}, ""));
  return el("section", { class: "card" }, el("h2", {}, "Lag", el("small", {}, "up to the last stable offset")), el("table", {}, el("thead", {}, head), el("tbody", {}, ...rows)));
}

// ---------------------------------------------------------------- topology

// Layers from left to right: topics that are only read, then each subtopology one step behind what feeds it.
function topology(detail) {
  const subs = detail.topology.subtopologies;
  const feeds = new Map();
  for (const sub of subs) for (const topic of sub.repartition_sinks) feeds.set(topic, sub.id);
  const depth = new Map();
  const depthOf = (sub, seen) => {
    if (depth.has(sub.id)) return depth.get(sub.id);
    if (seen.has(sub.id)) return 0;
    seen.add(sub.id);
    let most = 0;
    for (const topic of sub.repartition_sources) {
      const from = subs.find((other) => other.id === feeds.get(topic));
      if (from) most = Math.max(most, depthOf(from, seen) + 1);
    }
    depth.set(sub.id, most);
    return most;
  };
  subs.forEach((sub) => depthOf(sub, new Set()));

  const width = 176, gap = 60, line = 20, nodes = [], edges = [], heights = [];
  const place = (layer, height, draw) => {
    const y = (heights[layer] || 12);
    heights[layer] = y + height + 14;
    const node = { x: 10 + layer * (width + gap), y, height, draw };
    nodes.push(node);
    return node;
  };
  const topics = new Map();
  const topicNode = (name, layer, inner) => {
    if (!topics.has(name)) topics.set(name, place(layer, 26, { kind: inner ? "inner" : "topic", lines: [name] }));
    return topics.get(name);
  };
  for (const sub of [...subs].sort((a, b) => depth.get(a.id) - depth.get(b.id))) {
    const layer = 2 * depth.get(sub.id);
    const sources = [...sub.sources.map((topic) => topicNode(topic, layer, false)), ...sub.repartition_sources.map((topic) => topicNode(topic, layer, true))];
    const running = new Set(detail.members.flatMap((member) => member.assigned.active.filter((task) => task.startsWith(sub.id + "_"))));
    const lines = ["subtopology " + sub.id, running.size + (running.size === 1 ? " task runs" : " tasks run"), ...sub.changelogs.map((name) => "⛁ " + name)];
    const node = place(layer + 1, 16 + line * lines.length, { kind: "sub", lines });
    for (const source of sources) edges.push([source, node]);
    for (const sink of sub.repartition_sinks) edges.push([node, topicNode(sink, layer + 2, true)]);
  }
  const total = Math.max(...heights.map((height) => height || 0), 60);
  const wide = Math.max(...nodes.map((node) => node.x + width), 200) + 10;
  const drawing = svg("svg", { viewBox: `0 0 ${wide} ${total}`, role: "img", "aria-label": "Topology" });
  drawing.style.setProperty("--wide", wide + "px");
  for (const [from, to] of edges) {
    const [x1, y1, x2, y2] = [from.x + width, from.y + from.height / 2, to.x, to.y + to.height / 2];
    const bend = x2 > x1 ? (x1 + x2) / 2 : x1 + gap;
    drawing.append(svg("path", { class: "edge", d: `M${x1} ${y1}C${bend} ${y1} ${bend} ${y2} ${x2 - 6} ${y2}` }),
      svg("path", { class: "head-of", d: `M${x2} ${y2}l-8 -4v8z` }));
  }
  for (const node of nodes) {
    const round = node.draw.kind === "sub" ? 9 : 13;
    drawing.append(svg("rect", { class: node.draw.kind, x: node.x, y: node.y, width, height: node.height, rx: round }));
    node.draw.lines.forEach((text, at) => {
      const cut = text.length > 25 ? text.slice(0, 11) + "…" + text.slice(-12) : text;
      const label = svg("text", { x: node.x + 12, y: node.y + (node.draw.kind === "sub" ? 21 + at * line : 17), class: at > 0 ? "quiet" : "" });
      label.append(cut, svg("title", {}, text));
      drawing.append(label);
    });
  }
  return el("section", { class: "card" }, el("h2", {}, "Topology", el("small", {}, "epoch " + detail.topology.epoch)), el("div", { class: "topology" }, drawing));
}

// ---------------------------------------------------------------- journal

const TONES = {
  "stable": "good", "member-joined": "calm", "member-returned": "calm", "assigned": "calm", "warmup-progress": "calm",
  "session-expired": "bad", "too-slow": "bad", "refused": "bad", "topic-deleted": "bad", "deleted": "bad",
};

function timeline() {
  const entries = state.events.slice(-TIMELINE).reverse().map(entry);
  return el("section", { class: "card" }, el("h2", {}, "Why", el("small", {}, "the journal, newest first")),
    entries.length ? el("ol", { class: "timeline" }, ...entries) : el("ol", { class: "timeline" }, el("li", {}, el("time", {}), el("span", {}), el("span", { class: "none" }, "Nothing has happened yet."))));
}

function entry(event) {
  const when = new Date(event.at_ms);
  const today = when.toDateString() === new Date().toDateString();
  const time = when.toLocaleTimeString("en-GB") + (today ? "" : " " + when.toLocaleDateString("en-CA"));
  const kind = event.kind.replaceAll("-", " ");
  const moves = event.moves.length === 0 ? null : el("details", {}, el("summary", {}, number(event.moved) + (event.moved === 1 ? " move" : " moves")),
    el("div", { class: "moves" }, ...event.moves.flatMap((move) => [
      el("span", {}, move.what + (move.role === "active" || move.role === "partition" ? "" : " (" + move.role + ")")),
      el("span", {}, (move.from || "nobody") + " → " + (move.to || "nobody"))])));
  return el("li", { class: (TONES[event.kind] || "busy") + (state.fresh.has(event.seq) ? " fresh" : ""), "data-kind": event.kind },
    el("time", { datetime: when.toISOString(), title: when.toLocaleString("en-GB") }, time), el("span", { class: "dot" }),
    el("div", { class: "what" }, el("b", {}, kind), " – ", event.text, moves));
}

function happened(event) {
  if (event.group !== state.group) return;
  const last = state.events[state.events.length - 1];
  if (last && last.seq === event.seq) state.events.pop();
  else if (last && last.seq > event.seq) return;
  state.events.push(event);
  state.fresh.add(event.seq);
  loadGroup();
}

function listen() {
  const live = byId("live");
  const say = (text, cls) => { live.textContent = text; live.className = "live " + cls; };
  const source = new EventSource("events");
  source.onopen = () => say("live", "on");
  source.onerror = () => say("the broker does not answer", "off");
  source.addEventListener("journal", (message) => { happened(JSON.parse(message.data)); loadGroups(); });
  source.addEventListener("lost", choose);
}

window.addEventListener("hashchange", choose);
byId("search").addEventListener("input", drawGroups);
// Nothing is asked for while nobody looks.
setInterval(() => document.hidden || loadGroups(), GROUPS_EVERY_MS);
setInterval(() => document.hidden || loadGroup(), GROUP_EVERY_MS);
choose();
loadGroups();
listen();
