/* Kinds of nodes in C: a table that Linux reads in the image, and how each kind is made.
 *
 *   SINEW_KINDS = { { SINEW_KIND, .name = "echo", ... } };
 *   SINEW_MAKERS = { { &sinew_kinds[0], sizeof(struct state), make, update, stop } };
 *
 * One file of a program holds both tables. Link it with libsinew_guest.a and guest.ld. What the
 * records mean is said in crates/carve-out/src/image.rs. */
#ifndef SINEW_GUEST_H
#define SINEW_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#define SINEW_FIELDS_MAX 20
#define SINEW_PORTS_MAX 8
#define SINEW_PARAMETERS_MAX 12
#define SINEW_COUNTERS_MAX 8

enum sinew_scalar {
    SINEW_U8, SINEW_I8, SINEW_U16, SINEW_I16, SINEW_U32, SINEW_I32, SINEW_U64, SINEW_I64,
    SINEW_F32, SINEW_F64, SINEW_BOOL
};

/* A field of a message. */
struct sinew_field {
    char name[32];
    uint32_t scalar;
    uint32_t count;
    uint32_t offset;
};

enum sinew_direction { SINEW_IN, SINEW_OUT };

struct sinew_port {
    char name[32];
    char doc[160];
    char message[32];
    uint32_t direction;
    uint32_t optional;
    uint32_t size;
    uint32_t align;
    uint32_t hash; /* 0: it is counted from the fields */
    uint32_t field_count;
    struct sinew_field fields[SINEW_FIELDS_MAX];
};

enum sinew_parameter_type { SINEW_NUMBER, SINEW_WHOLE, SINEW_TRUTH, SINEW_LIST };

struct sinew_parameter {
    char name[32];
    char doc[160];
    char unit[32];
    char default_text[64];
    uint32_t type;
    uint32_t count;
    double min;
    double max;
};

struct sinew_kind {
    uint32_t magic;
    uint32_t version;
    uint32_t code_version;
    uint32_t stack;
    uint32_t port_count;
    uint32_t parameter_count;
    uint32_t counter_count;
    uint32_t reserved;
    char name[32];
    char doc[320];
    char counters[SINEW_COUNTERS_MAX][32];
    struct sinew_port ports[SINEW_PORTS_MAX];
    struct sinew_parameter parameters[SINEW_PARAMETERS_MAX];
};

_Static_assert(sizeof(struct sinew_field) == 44, "a field is as Linux reads it");
_Static_assert(sizeof(struct sinew_port) == 1128, "a port is as Linux reads it");
_Static_assert(sizeof(struct sinew_parameter) == 312, "a parameter is as Linux reads it");
_Static_assert(sizeof(struct sinew_kind) == 13408, "a kind is as Linux reads it");

/* Begins every record. */
#define SINEW_KIND .magic = 0x4b574e53, .version = 2

/* A node's ports; only valid during the call that got it. */
struct sinew_io;

struct sinew_parameters {
    const double *values; /* in the order of the kind's record */
    uint32_t value_count;
    uint32_t period_us;
};

struct sinew_cycle {
    uint64_t number;
    uint32_t period_us;
    uint32_t skipped;         /* whole periods lost immediately before this cycle */
    uint32_t linux_silent_ms; /* since when Linux has not said that it is alive */
};

/* How a kind is made. `state` is zeroed and aligned to 8. `make` and `update` return NULL, or why
 * the guest must stop: a text that stays. `make` and `stop` may be NULL; `stop` writes what is safe
 * when the guest ends. */
struct sinew_maker {
    const struct sinew_kind *record;
    uint32_t state_size;
    const char *(*make)(void *state, const struct sinew_parameters *parameters);
    const char *(*update)(void *state, struct sinew_io *io, const struct sinew_cycle *cycle);
    void (*stop)(void *state, struct sinew_io *io);
};

#define SINEW_KINDS \
    __attribute__((section(".sinew_kinds"), used)) static const struct sinew_kind sinew_kinds[]
#define SINEW_MAKERS \
    __attribute__((section(".sinew_makers_c"), used)) static const struct sinew_maker sinew_makers[]

/* Whether something is linked to a port. On one that is not, the calls below are faults. */
bool sinew_is_linked(struct sinew_io *io, uint32_t port);

enum sinew_freshness { SINEW_NONE, SINEW_OLD, SINEW_NEW };

/* What sinew_read gives: nothing yet (zeros), what was there before, or a new message. */
uint32_t sinew_fresh(struct sinew_io *io, uint32_t port);
/* The message of an input. */
const void *sinew_read(struct sinew_io *io, uint32_t port);
/* Takes the next message of a queue in the same cycle; whether there was one. */
bool sinew_next(struct sinew_io *io, uint32_t port);
/* What an output sends after this update; it begins as what was sent before. */
void *sinew_write(struct sinew_io *io, uint32_t port);
/* A counter of the kind's record. */
uint32_t *sinew_counter(struct sinew_io *io, uint32_t counter);

/* Memory that is shared with Linux by name: regions, semaphores, message queues. Each function
 * returns 0, or why not. Those with a deadline may wait that long, and so does the node that calls:
 * give 0 in a cycle and call again, or leave it to a job. */
enum sinew_made_by { SINEW_MADE_BY_LINUX, SINEW_MADE_BY_GUEST };

enum sinew_refusal {
    SINEW_TAKEN = 1,     /* the name stands for something else */
    SINEW_UNKNOWN,       /* nobody has made such a thing */
    SINEW_BAD_SIZE,      /* too small, too large, or of a shape that cannot be */
    SINEW_TOO_MANY,      /* all entries are in use */
    SINEW_QUOTA,         /* more bytes than a side gives out */
    SINEW_NO_ROOM,       /* no room of that length is left */
    SINEW_ATTACHED,      /* a side still holds it */
    SINEW_DETACHED,      /* this side does not hold it */
    SINEW_WRONG_CLASS,   /* it is something else */
    SINEW_WRONG_HASH,    /* it holds messages of another type */
    SINEW_BAD_NAME,      /* a name has 1 to 31 bytes */
    SINEW_BAD_REQUEST,   /* it is not understood */
    SINEW_BUSY = 15,     /* too many wait already */
    SINEW_CORRUPT = 17,  /* Linux wrote what it must not */
    SINEW_LATE = 18      /* the deadline is over */
};

/* Finds what has this name, or has it made by one side's allocator. */
uint32_t sinew_get_region(const char *name, uint32_t bytes, uint32_t hash,
                          uint32_t made_by, uint32_t deadline_ms);
uint32_t sinew_get_semaphore(const char *name, uint32_t tokens,
                             uint32_t made_by, uint32_t deadline_ms);
uint32_t sinew_get_queue(const char *name, uint32_t message_size, uint32_t capacity,
                         uint32_t hash, uint32_t made_by, uint32_t deadline_ms);
/* Holds it, so that it stays; lets go of it, once for each sinew_attach. */
uint32_t sinew_attach(const char *name);
uint32_t sinew_detach(const char *name);
uint32_t sinew_remove(const char *name, uint32_t deadline_ms);

/* Of what this side holds. `at` is a multiple of 4. */
uint32_t sinew_region_read(const char *name, uint32_t at, void *bytes, uint32_t len);
uint32_t sinew_region_write(const char *name, uint32_t at, const void *bytes, uint32_t len);
uint32_t sinew_post(const char *name);
uint32_t sinew_take(const char *name, uint32_t deadline_ms);
uint32_t sinew_send(const char *name, const void *message, uint32_t len, uint32_t deadline_ms);
uint32_t sinew_receive(const char *name, void *message, uint32_t len, uint32_t deadline_ms);

/* Jobs: work that Linux calls for by name. A weak thread does one after the other.
 *
 *   SINEW_JOBS = { { "double", "doubles the first number", twice } };
 */
struct sinew_answer {
    uint32_t numbers[5];
    uint32_t len; /* of the text */
    char text[64];
};

/* `run` returns NULL, or why the job failed: a text that stays. */
struct sinew_job {
    const char *name;
    const char *doc;
    const char *(*run)(const uint32_t numbers[5], const void *data, uint32_t len,
                       struct sinew_answer *answer);
};

#define SINEW_JOBS \
    __attribute__((section(".sinew_jobs_c"), used)) static const struct sinew_job sinew_jobs[]

#endif
