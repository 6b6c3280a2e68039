import org.apache.kafka.coordinator.group.api.streams.assignor.*;
import java.util.*;

/** Deals tasks to members by turn, whatever they had before: a placement that is easy to repeat elsewhere. */
public final class RoundRobin implements TaskAssignor {
    public String name() { return "round-robin"; }

    public GroupAssignment assign(GroupSpec group, TopologyDescriber topology) {
        List<String> members = new ArrayList<>(new TreeSet<>(group.memberIds()));
        List<Map<String, Set<Integer>>> active = new ArrayList<>(), standby = new ArrayList<>();
        for (String m : members) { active.add(new TreeMap<>()); standby.add(new TreeMap<>()); }
        int n = members.size(), k = 0;
        for (String sub : new TreeSet<>(topology.subtopologies()))
            for (int p = 0; p < topology.maxNumInputPartitions(sub); p++, k++) {
                active.get(k % n).computeIfAbsent(sub, x -> new TreeSet<>()).add(p);
                Set<String> taken = new HashSet<>(Set.of(group.memberMetadata(members.get(k % n)).processId()));
                if (!topology.isStateful(sub)) continue;
                for (int r = 1; r <= group.configs().numStandbyReplicas(); r++) {
                    int at = (k + r) % n;
                    if (taken.add(group.memberMetadata(members.get(at)).processId()))
                        standby.get(at).computeIfAbsent(sub, x -> new TreeSet<>()).add(p);
                }
            }
        Map<String, MemberAssignment> result = new HashMap<>();
        for (int i = 0; i < n; i++) result.put(members.get(i), new MemberAssignment(active.get(i), standby.get(i)));
        return new GroupAssignment(result);
    }
}
