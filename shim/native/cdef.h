/* SPDX-License-Identifier: Apache-2.0
 * What Python sees of shim/closer.h, shim/wire.h and groups.h; cffi checks it against them. */
#define KREX_WIRE_MAGIC ...
#define KREX_WIRE_NAME ...
#define KREX_BLOCKS ...
#define KREX_MARKS ...
#define KREX_WORDS ...
struct krex_board {
    ...;
};
enum krex_block_state { KREX_BLOCK_FREE, KREX_BLOCK_RESERVED, KREX_BLOCK_LIVE, ... };
enum krex_block_flag { KREX_FLAG_SELF_FENCED, KREX_FLAG_UNLISTED, KREX_FLAG_OTHER_DEVICE, ... };
enum krex_mark_state {
    KREX_MARK_FREE,
    KREX_MARK_REQUESTED,
    KREX_MARK_EXCLUSIVE,
    KREX_MARK_SHARED,
    KREX_MARK_LEAVING,
    KREX_MARK_IDLE,
    KREX_MARK_CLOSING,
    KREX_MARK_YIELDED,
    ...
};
struct krex_audit {
    uint64_t gap_ns;
    uint64_t timed_ns;
    uint64_t shortest_ns;
    uint32_t shortest_launches;
    uint32_t events;
    uint32_t pairs;
    uint32_t pairs_inside;
    uint32_t cold;
    uint32_t below_floor;
    uint32_t empty;
    uint32_t uncovered;
    uint32_t by_others;
    uint32_t after_stop;
    uint32_t disturbed;
    uint32_t split;
    ...;
};
enum krex_wire_type {
    KREX_WIRE_HELLO,
    KREX_WIRE_WELCOME,
    KREX_WIRE_REFUSED,
    KREX_WIRE_ENTER,
    KREX_WIRE_LEAVE,
    KREX_WIRE_NOTE,
    KREX_WIRE_TICKET,
    KREX_WIRE_TICKET_BACK,
    ...
};
struct krex_wire {
    uint32_t magic;
    uint32_t type;
    uint32_t slot;
    uint64_t value;
    char text[128];
    char text2[128];
    ...;
};
void krex_board_init(struct krex_board *board, const char *device_key, int controller_pid);
void krex_board_lease(struct krex_board *board, uint64_t ns);
int krex_block_reserve(struct krex_board *board, int pid);
void krex_block_free(struct krex_board *board, int index);
int krex_block_state(const struct krex_board *board, int index);
uint32_t krex_block_flags(const struct krex_board *board, int index);
uint64_t krex_block_longest_wait_ns(const struct krex_board *board, int index);
int krex_gate_swap(struct krex_board *board, int which, uint64_t expected);
uint64_t krex_gate_epoch(const struct krex_board *board, int which);
int krex_gate_fence(void);
int krex_in_flight(const struct krex_board *board, int which, uint64_t epoch, int block);
int krex_long_open(const struct krex_board *board, uint64_t epoch);
int krex_block_clean(const struct krex_board *board, int index);
uint64_t krex_block_submissions(const struct krex_board *board, int index);
int krex_block_tids(const struct krex_board *board, int index, int32_t *tids);
void krex_block_give_ticket(struct krex_board *board, int index, uint64_t number);
uint64_t krex_block_ticket(const struct krex_board *board, int index);
void krex_block_pass(struct krex_board *board, int index, uint64_t epoch);
void krex_block_ask_drain(struct krex_board *board, int index, uint64_t epoch);
int krex_block_drained(const struct krex_board *board, int index, uint64_t epoch);
int krex_mark_move(struct krex_board *board, int index, int mark, uint32_t from, uint32_t to);
void krex_block_audit(const struct krex_board *board, int index, int mark, struct krex_audit *to);
uint64_t krex_block_limit_wait_ns(const struct krex_board *board, int index);
uint64_t krex_mark_idle_since_ns(const struct krex_board *board, int index, int mark);
void krex_block_ask_idle(struct krex_board *board, int index, uint32_t number);
int krex_block_is_idle(const struct krex_board *board, int index, uint32_t number);
void krex_block_idle_asked(struct krex_board *board, int index, uint32_t number);
int krex_groups_write(const int *freeze, int count, int frozen);
int krex_groups_await_frozen(const int *events, int count, uint64_t ns);
/* Of shim/sim/wire.h, what the controller says to the process of the simulated devices. */
#define KREX_SIM_MAGIC ...
#define KREX_SIM_DEVICES ...
enum krex_sim_op { KREX_SIM_GONE, KREX_SIM_MEMORY, KREX_SIM_RESIDENTS, ... };
enum krex_sim_status { KREX_SIM_OK, ... };
struct krex_sim_packet {
    uint32_t magic;
    uint32_t op;
    uint32_t status;
    uint32_t device;
    uint64_t value;
    uint64_t value2;
    char text[...];
    ...;
};
