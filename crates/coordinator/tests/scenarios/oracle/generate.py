#!/usr/bin/env python3
"""Random histories of streams groups, played to Kafka's own coordinator (coordinator-oracle) with the RoundRobin assignor.

gen.py HISTORIES STEPS SEED > vectors.jsonl : one line a history: {"config":{}, "steps":[[op, answer], ...]}.
Needs KAFKA_LIBS with RoundRobin in a jar, and the oracle's run.sh as ORACLE.
"""
import base64, json, os, random, subprocess, sys

ORACLE = os.environ['ORACLE']
DEFAULTS = {"group.streams.assignors": "RoundRobin", "group.streams.num.warmup.replicas": 0,
            "offsets.retention.check.interval.ms": 1000000000}

class Kafka:
    def __init__(self):
        self.p = subprocess.Popen([ORACLE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
    def ask(self, op):
        self.p.stdin.write(json.dumps(op) + "\n"); self.p.stdin.flush()
        line = self.p.stdout.readline()
        if not line: raise SystemExit("the oracle is gone")
        a = json.loads(line)
        if 'fault' in a: raise SystemExit(f"fault {a} for {op}")
        return a

def tid(n): return base64.urlsafe_b64encode(n.to_bytes(16, 'big')).decode()[:22]

def canon(v):
    if isinstance(v, list):
        v = [canon(x) for x in v]
        return sorted(v, key=lambda x: json.dumps(x, sort_keys=True)) if v and isinstance(v[0], dict) else v
    if isinstance(v, dict): return {k: canon(x) for k, x in v.items()}
    return v

class Client:
    def __init__(self, mid, process, instance, endpoint):
        self.id, self.process, self.instance, self.endpoint = mid, process, instance, endpoint
        self.epoch, self.eie, self.tasks, self.sent, self.inside = 0, -1, None, None, False

class History:
    def __init__(self, kafka, rng, steps):
        self.k, self.r, self.n, self.out = kafka, rng, steps, []
        r = rng
        self.endpoints = r.random() < .25
        self.now = 1000000
        self.topics = {}
        self.ids = 0
        cfg = dict(DEFAULTS)
        cfg["group.streams.initial.rebalance.delay.ms"] = r.choice([0, 0, 0, 2000])
        cfg["group.streams.assignment.interval.ms"] = r.choice([0, 0, 1000])
        cfg["group.streams.num.standby.replicas"] = r.choice([0, 0, 1, 2])
        self.config = {"delay": cfg["group.streams.initial.rebalance.delay.ms"], "interval": cfg["group.streams.assignment.interval.ms"], "standby": cfg["group.streams.num.standby.replicas"]}
        self.k.ask({"op": "config", "broker": cfg, "raw": True})
        self.variant = r.choice("ABCD")
        self.clients, self.counter, self.members = {}, 0, 0
        self.last = None
        start = {"in": 3, "in2": 2}
        if r.random() < .7 or self.endpoints: start.update({"cl": 2 if self.variant != "B" else 3})
        if self.variant in "B" and (r.random() < .5 or self.endpoints): start.update({"r": 3})
        if not self.endpoints and r.random() < .2: del start["in"]
        self.set_topics(start)

    def topology(self):
        v = self.variant
        subs = {
          "A": [{"subtopologyId": "0", "sourceTopics": ["in"]}, {"subtopologyId": "1", "sourceTopics": ["in2"], "stateChangelogTopics": [{"name": "cl", "topicConfigs": [{"key": "cleanup.policy", "value": "compact"}]}]}],
          "B": [{"subtopologyId": "0", "sourceTopics": ["in"], "repartitionSinkTopics": ["r"]}, {"subtopologyId": "1", "repartitionSourceTopics": [{"name": "r"}], "stateChangelogTopics": [{"name": "cl", "replicationFactor": 1}]}],
          "C": [{"subtopologyId": "0", "sourceTopics": ["in", "in2"]}],
          "D": [{"subtopologyId": "0", "sourceTopics": ["in2"], "stateChangelogTopics": [{"name": "cl"}]}],
        }[v]
        return {"epoch": 0, "subtopologies": subs}

    def step(self, op):
        a = self.k.ask(op)
        out = {}
        if 'response' in a: out['response'] = canon(a['response'])
        if a.get('records'): out['records'] = [[x['type'], x['rawKey'], x.get('rawValue')] for x in a['records']]
        out['timers'] = {k: v - a['now'] for k, v in a.get('timers', {}).items() if not k.startswith('expire')}
        if a.get('creatableTopics'): out['create'] = sorted([t['name'], t['numPartitions'], t['replicationFactor']] for t in a['creatableTopics'])
        self.out.append([op, out])
        return a

    def set_topics(self, topics):
        full = []
        for name, n in topics.items():
            if name not in self.topics: self.ids += 1; self.topics[name] = [tid(self.ids), n]
            self.topics[name][1] = n
        for name in list(self.topics):
            if name not in topics: del self.topics[name]
        for name in sorted(self.topics): full.append({"name": name, "id": self.topics[name][0], "partitions": self.topics[name][1]})
        self.step({"op": "topics", "topics": full})

    def request(self, body, version=1, client="client"):
        body = {"groupId": "app", **body}
        return self.step({"op": "request", "api": 88, "version": version, "clientId": client, "body": body})['response']

    def receive(self, c, resp, lost):
        if lost: return
        if resp['errorCode'] in (110, 25): c.epoch, c.tasks, c.sent = 0, None, None
        elif resp['errorCode'] == 0 and resp['memberEpoch'] >= 0:
            c.epoch, c.eie = resp['memberEpoch'], resp['endpointInformationEpoch']
            if resp['activeTasks'] is not None:
                c.tasks = {k: resp[k] for k in ("activeTasks", "standbyTasks", "warmupTasks")}

    def join(self, c, lost=False):
        body = {"memberId": c.id, "memberEpoch": 0, "rebalanceTimeoutMs": self.r.choice([5000, 20000, 60000]), "processId": c.process, "topology": self.topology(),
                "activeTasks": [], "standbyTasks": [], "warmupTasks": [], "endpointInformationEpoch": c.eie}
        if c.instance: body["instanceId"] = c.instance
        if c.endpoint: body["userEndpoint"] = {"host": c.endpoint, "port": 9}
        if self.r.random() < .1: body["rackId"] = self.r.choice(["r1", "r2"])
        if self.r.random() < .1: body["clientTags"] = [{"key": "zone", "value": self.r.choice("ab")}]
        c.sent = None
        self.receive(c, self.request(body, version=self.r.choice([1, 1, 0])), lost)
        c.inside = True

    def beat(self, c, lost=False):
        body = {"memberId": c.id, "memberEpoch": c.epoch, "endpointInformationEpoch": c.eie}
        if c.instance: body["instanceId"] = c.instance
        if c.epoch == 0 and c.instance:  # the product takes it back at once (decision 16), Kafka does not
            self.leave(c, -2); c.inside = False; c.away = True
            return
        if c.epoch == 0: return self.join(c)
        x = self.r.random()
        if c.tasks is not None and (c.tasks != c.sent or x < .2):
            body.update(c.tasks); c.sent = c.tasks
        elif x < .25: body.update({"activeTasks": [], "standbyTasks": [], "warmupTasks": []})
        y = self.r.random()
        if y < .03: body["memberEpoch"] += 1
        elif y < .06: body["memberEpoch"] = max(1, c.epoch - 1)
        elif y < .08: body["rackId"] = "r3"
        elif y < .1: body["rebalanceTimeoutMs"] = 7777
        elif y < .14: body["taskOffsets"] = [{"subtopologyId": "0", "partition": p, "offset": self.r.randint(0, 9)} for p in range(2)]
        elif y < .15 and not lost: body["shutdownApplication"] = True
        elif y < .16: body["activeTasks"], body["standbyTasks"], body["warmupTasks"] = [{"subtopologyId": self.r.choice("017"), "partitions": [self.r.choice([0, 9])]}], [], []
        self.receive(c, self.request(body, client=self.r.choice(["client"] * 30 + ["other"])), lost)

    def run(self):
        r = self.r
        for _ in range(self.n):
            inside = [c for c in self.clients.values() if c.inside]
            x = r.random()
            if not inside or (x < .08 and len(inside) < 5):
                self.counter += 1
                c = Client(f"m{self.counter}", r.choice(["p1", "p2", "p3"]), f"i{self.counter}" if r.random() < .3 else None, f"h{self.counter}" if self.endpoints and r.random() < .6 else None)
                self.clients[c.id] = c
                self.join(c, lost=r.random() < .05)
            elif x < .62: self.beat(r.choice(inside), lost=r.random() < .08)
            elif x < .66:
                c = r.choice(inside)
                if c.instance is None: self.join(c)
            elif x < .70 and not self.endpoints:
                c = r.choice(inside)
                self.leave(c, -1)
            elif x < .74 and not self.endpoints:
                c = r.choice(inside)
                if c.instance: self.leave(c, -2); c.inside = False; c.away = True
            elif x < .78:
                away = [c for c in self.clients.values() if getattr(c, 'away', False)]
                if away:
                    old = r.choice(away); old.away = False
                    self.counter += 1
                    c = old if r.random() < .3 else Client(f"m{self.counter}", old.process if r.random() < .7 else "p9", old.instance, None)
                    if c is not old: del self.clients[old.id]
                    c.epoch, c.tasks, c.sent = 0, None, None
                    self.clients[c.id] = c
                    self.join(c)
            elif x < .88:
                ms = r.choice([10, 50, 100, 300]) if self.endpoints else r.choice([100, 500, 1000, 2500, 2500, 6000, 15000, 46000 if r.random() < .15 else 300])
                self.step({"op": "advance", "ms": ms})
            elif x < .92 and not self.endpoints:
                t = {k: v[1] for k, v in self.topics.items()}
                y = r.random()
                if y < .4:
                    for n, c in (("in", 3), ("in2", 2), ("cl", 2 if self.variant != "B" else 3), ("r", 3)):
                        if n not in t: t[n] = c; break
                elif y < .6: t[r.choice(list(t))] += 1
                elif y < .75 and len(t) > 1: del t[r.choice(list(t))]
                else: t.setdefault("other", 1)
                self.set_topics(t)
            elif x < .94:
                self.step({"op": "groupConfig", "group": "app", "configs": r.choice([{}, {"streams.num.standby.replicas": "1"}, {"streams.num.standby.replicas": "2"}, {"streams.rack.aware.assignment.tags": "zone"}, {"streams.heartbeat.interval.ms": "6000"}])})
            elif x < .96 and not self.endpoints:
                self.step({"op": "restart"})
            else:
                self.step({"op": "request", "api": 89, "version": 1, "body": {"groupIds": ["app"]}})
        return {"config": self.config, "endpoints": self.endpoints, "steps": self.out}

    def leave(self, c, epoch):
        body = {"memberId": c.id, "memberEpoch": epoch}
        if c.instance: body["instanceId"] = c.instance
        self.request(body)
        c.inside, c.epoch, c.tasks, c.sent = False, 0, None, None

if __name__ == "__main__":
    count, steps, seed = map(int, sys.argv[1:4])
    kafka = Kafka()
    for i in range(count):
        print(json.dumps(History(kafka, random.Random(seed * 1000003 + i), steps).run(), separators=(',', ':')))
