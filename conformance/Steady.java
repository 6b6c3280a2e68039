import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;

/** A Kafka Streams application with the streams protocol that counts until its standard input ends: bootstrap servers, application id, topic. */
public class Steady {
    public static void main(String[] args) throws Exception {
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(args[2], Consumed.with(Serdes.String(), Serdes.String())).groupByKey().count();
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        config.put("application.id", args[1]);
        config.put("group.protocol", "streams");
        config.put("auto.offset.reset", "earliest");
        config.put("commit.interval.ms", 100);
        config.put("state.dir", System.getProperty("java.io.tmpdir") + "/" + args[1]);
        KafkaStreams streams = new KafkaStreams(builder.build(), config);
        streams.start();
        while (System.in.read() != -1) { }
        streams.close();
        streams.cleanUp();
    }
}
