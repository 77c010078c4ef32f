/* A kind in C: sends back what it gets, its values times a gain.
 *
 * As part of a Rust image: trials/build.rs. As an image of its own, in guest/:
 *
 *   cargo build --release
 *   arm-none-eabi-gcc -O2 -marm -march=armv7-a -mfloat-abi=soft -ffreestanding -nostdlib \
 *     -I rtos/include -T rtos/guest.ld -z noexecstack -o target/echo \
 *     examples/echo.c target/armv7a-none-eabi/release/libsinew_guest.a
 */
#include <stddef.h>

#include "sinew_guest.h"

/* What crosses both ports; the fields below say the same to Linux. */
struct echo {
    uint64_t sequence;
    double values[6];
};

enum { IN, OUT };

struct state {
    double gain;
};

static const char *make(void *state, const struct sinew_parameters *parameters)
{
    struct state *self = state;
    self->gain = parameters->values[0];
    return NULL;
}

static const char *update(void *state, struct sinew_io *io, const struct sinew_cycle *cycle)
{
    const struct state *self = state;
    (void)cycle;
    if (sinew_fresh(io, IN) != SINEW_NEW)
        return NULL;
    const struct echo *came = sinew_read(io, IN);
    struct echo *goes = sinew_write(io, OUT);
    goes->sequence = came->sequence;
    for (int i = 0; i < 6; i++)
        goes->values[i] = came->values[i] * self->gain;
    *sinew_counter(io, 0) += 1;
    return NULL;
}

static void stop(void *state, struct sinew_io *io)
{
    (void)state;
    struct echo *goes = sinew_write(io, OUT);
    *goes = (struct echo){ 0 };
}

#define ECHO \
    .message = "Echo", .size = sizeof(struct echo), .align = 8, .field_count = 2, .fields = { \
        { "sequence", SINEW_U64, 1, offsetof(struct echo, sequence) }, \
        { "values", SINEW_F64, 6, offsetof(struct echo, values) }, \
    }

SINEW_KINDS = { {
    SINEW_KIND,
    .code_version = 1,
    .stack = 8 * 1024,
    .name = "echo_c",
    .doc = "Sends every message back, its values times `gain`.",
    .port_count = 2,
    .ports = {
        { .name = "in", .doc = "What is to come back.", .direction = SINEW_IN, ECHO },
        { .name = "out", .doc = "What came.", .direction = SINEW_OUT, ECHO },
    },
    .parameter_count = 1,
    .parameters = {
        { .name = "gain", .doc = "Factor of the values.", .default_text = "1", .count = 1,
          .min = -1e6, .max = 1e6 },
    },
    .counter_count = 1,
    .counters = { "answered" },
} };

SINEW_MAKERS = { { &sinew_kinds[0], sizeof(struct state), make, update, stop } };

/* Work that Linux calls for by name. */
static const char *twice(const uint32_t numbers[5], const void *data, uint32_t len,
                         struct sinew_answer *answer)
{
    (void)data;
    if (len > 0)
        return "it takes a number and no text";
    answer->numbers[0] = 2 * numbers[0];
    return NULL;
}

SINEW_JOBS = { { "twice", "doubles the first number", twice } };
