/* Static consumers of librdkafka, driven by lines on standard input: see bounce.py. cc member.c -lrdkafka -lpthread */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <rdkafka.h>

#define MEMBERS 64
enum { LINE = 4096 };

struct member {
        char name[64], instance[64];
        volatile int stop;
        pthread_t thread;
};

static const char *bootstrap, *group, *topic, *protocol;
static struct member members[MEMBERS];
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

static void say(const char *name, const char *what, const char *rest) {
        pthread_mutex_lock(&output);
        printf("%s %s %s\n", name, what, rest);
        fflush(stdout);
        pthread_mutex_unlock(&output);
}

static void set(rd_kafka_conf_t *conf, const char *key, const char *value) {
        char why[512];
        if (rd_kafka_conf_set(conf, key, value, why, sizeof(why)) != RD_KAFKA_CONF_OK) {
                fprintf(stderr, "%s: %s\n", key, why);
                exit(2);
        }
}

/* librdkafka has no call for it; its serialised metadata are a mark that ends in ':', then the generation. */
static int generation(rd_kafka_t *consumer) {
        rd_kafka_consumer_group_metadata_t *metadata = rd_kafka_consumer_group_metadata(consumer);
        void *bytes = NULL;
        size_t size = 0;
        int found = -1;
        if (metadata == NULL) return found;
        rd_kafka_error_t *error = rd_kafka_consumer_group_metadata_write(metadata, &bytes, &size);
        if (error == NULL) {
                const char *mark = memchr(bytes, ':', size);
                memcpy(&found, mark + 1, sizeof(found));
                rd_kafka_mem_free(NULL, bytes);
        } else {
                rd_kafka_error_destroy(error);
        }
        rd_kafka_consumer_group_metadata_destroy(metadata);
        return found;
}

static void owned(rd_kafka_t *consumer, char *text) {
        rd_kafka_topic_partition_list_t *list = NULL;
        rd_kafka_assignment(consumer, &list);
        rd_kafka_topic_partition_list_sort(list, NULL, NULL);
        int length = sprintf(text, "%d ", generation(consumer));
        for (int i = 0; i < list->cnt && length < LINE - 16; i++)
                length += sprintf(text + length, "%s%d", i ? "," : "", list->elems[i].partition);
        if (list->cnt == 0) strcpy(text + length, "-");
        rd_kafka_topic_partition_list_destroy(list);
}

static void *consume(void *argument) {
        struct member *self = argument;
        char why[512], now[LINE], before[LINE] = "";
        rd_kafka_conf_t *conf = rd_kafka_conf_new();
        set(conf, "bootstrap.servers", bootstrap);
        set(conf, "group.id", group);
        set(conf, "group.instance.id", self->instance);
        set(conf, "group.protocol", protocol);
        set(conf, "auto.offset.reset", "earliest");
        if (strcmp(protocol, "classic") == 0) {
                set(conf, "session.timeout.ms", "30000");
                set(conf, "heartbeat.interval.ms", "500");
        }
        rd_kafka_t *consumer = rd_kafka_new(RD_KAFKA_CONSUMER, conf, why, sizeof(why));
        rd_kafka_poll_set_consumer(consumer);
        rd_kafka_topic_partition_list_t *topics = rd_kafka_topic_partition_list_new(1);
        rd_kafka_topic_partition_list_add(topics, topic, RD_KAFKA_PARTITION_UA);
        rd_kafka_subscribe(consumer, topics);
        rd_kafka_topic_partition_list_destroy(topics);
        while (!self->stop) {
                rd_kafka_message_t *message = rd_kafka_consumer_poll(consumer, 20);
                if (message != NULL) rd_kafka_message_destroy(message);
                rd_kafka_resp_err_t fatal = rd_kafka_fatal_error(consumer, why, sizeof(why));
                if (fatal) {
                        say(self->name, "failed", rd_kafka_err2name(fatal));
                        break;
                }
                owned(consumer, now);
                if (strcmp(now, before) != 0) say(self->name, "owns", strcpy(before, now));
        }
        rd_kafka_consumer_close(consumer);
        rd_kafka_destroy(consumer);
        say(self->name, "stopped", "");
        self->name[0] = 0;
        return NULL;
}

int main(int argc, char **argv) {
        char line[256], name[64], instance[64];
        if (argc != 5) return 2;
        bootstrap = argv[1], group = argv[2], topic = argv[3], protocol = argv[4];
        while (fgets(line, sizeof(line), stdin)) {
                if (sscanf(line, "start %63s %63s", name, instance) == 2) {
                        for (int i = 0; i < MEMBERS; i++) {
                                if (members[i].name[0]) continue;
                                strcpy(members[i].name, name);
                                strcpy(members[i].instance, instance);
                                members[i].stop = 0;
                                pthread_create(&members[i].thread, NULL, consume, &members[i]);
                                pthread_detach(members[i].thread);
                                break;
                        }
                } else if (sscanf(line, "stop %63s", name) == 1) {
                        for (int i = 0; i < MEMBERS; i++)
                                if (strcmp(members[i].name, name) == 0) members[i].stop = 1;
                }
        }
        return 0;
}
