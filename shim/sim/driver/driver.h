/* SPDX-License-Identifier: Apache-2.0
 *
 * The simulated driver, whatever vendor's face it has: its objects, and what its files offer to each
 * other and to a face. A face checks handles, translates results, and has no state of its own.
 *
 * Who runs where. The program's threads call in and submit. The worker, a thread of this driver, takes
 * the results of the device one after another and does then what a command does to memory: its effect.
 * Two helpers run the program's callbacks, and watch the words that held commands wait for. Effects run in the order in which commands end in device time, and never alter that time.
 *
 * Locks, outermost first: drv_lock (every object's fields, unless said otherwise), then the leaves: the
 * channel's socket, the handles, the ranges of memory. Whoever waits for the device holds none of them.
 * Functions here take drv_lock themselves; those that want the caller to hold it say "locked".
 *
 * An object whose handle the program destroyed may still be wanted by commands under way: streams and
 * events are counted. A context is never freed: threads may have it current for good.
 */
#ifndef KREX_SIM_DRIVER_H
#define KREX_SIM_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/wire.h"

enum drv_result {
    DRV_OK = 0,
    DRV_INVALID_VALUE,
    DRV_OUT_OF_MEMORY,
    DRV_NOT_INITIALIZED,
    DRV_NO_DEVICE,
    DRV_INVALID_DEVICE,
    DRV_INVALID_IMAGE,
    DRV_INVALID_CONTEXT,
    DRV_CONTEXT_DESTROYED,
    DRV_PRIMARY_ACTIVE,
    DRV_INVALID_PTX,
    DRV_NO_BINARY,
    DRV_UNSUPPORTED_PTX,
    DRV_FILE_NOT_FOUND,
    DRV_SYSTEM, /* the operating system refused something */
    DRV_INVALID_HANDLE,
    DRV_NOT_FOUND,
    DRV_NOT_READY,
    DRV_ILLEGAL_ADDRESS,
    DRV_LAUNCH_RESOURCES,
    DRV_LAUNCH_TIMEOUT,
    DRV_LAUNCH_FAILED,
    DRV_ALREADY_REGISTERED,
    DRV_NOT_REGISTERED,
    DRV_NOT_PERMITTED,
    DRV_NOT_SUPPORTED,
    DRV_COOPERATIVE_TOO_LARGE,
    DRV_PEER_UNSUPPORTED,
    DRV_LOST, /* the device, or its process */
    DRV_CAPTURE_UNSUPPORTED,
    DRV_CAPTURE_INVALIDATED,
    DRV_CAPTURE_MERGE,
    DRV_CAPTURE_UNMATCHED,
    DRV_CAPTURE_UNJOINED,
    DRV_CAPTURE_ISOLATION,
    DRV_CAPTURE_IMPLICIT,
    DRV_CAPTURED_EVENT,
    DRV_CAPTURE_WRONG_THREAD,
    DRV_GRAPH_UPDATE_FAILURE,
    DRV_RESULTS
};

/* What a face says of its vendor: where drivers differ in more than names. */
struct drv_image;
struct drv_bytes;
struct drv_vendor {
    enum drv_result (*read_image)(struct drv_image *image, struct drv_bytes bytes); /* image.h */
    /* The environment: what narrows the devices first (or NULL), and then the first of these that is set. */
    const char *visible_first, *visible[2];
    void (*name_uuid)(const char uuid[16], char *to, size_t size); /* as it stands there */
    const char *loading; /* modules are loaded lazily unless it says EAGER; NULL: never lazily */
    uint32_t largest_y_z, largest_block_z; /* of a grid, in blocks; of a block, in threads */
    uint32_t shared_bytes;                 /* that a block may have without asking for more */
    void *extra_end;                       /* of a launch's `extra` */
    struct {
        uint32_t threads, blocks, registers, shared, reserved,
            warp; /* reserved: shared, a block's */
    } multiprocessor;
    bool faults_abort; /* a kernel's ends the program */
};
extern const struct drv_vendor drv_vendor;

/* handle.c: which pointers are handles. A leaf lock; call from anywhere. */
enum drv_type {
    DRV_CONTEXT = 1,
    DRV_STREAM,
    DRV_EVENT,
    DRV_POOL,
    DRV_GREEN,
    DRV_MODULE,
    DRV_LIBRARY,
    DRV_KERNEL, /* a library's */
    DRV_FUNCTION,
    DRV_LINK,
    DRV_GRAPH,
    DRV_GRAPH_EXEC,
    DRV_GRAPH_NODE,
};

bool drv_handle_add(enum drv_type type, const void *handle); /* false: no memory */
bool drv_handle_is(enum drv_type type, const void *handle);
void drv_handle_remove(const void *handle);

struct drv_command; /* one under way; submit.c */
struct drv_capture; /* capture.c's: what a stream captures into */
struct drv_stream;

struct drv_device {
    const struct krex_sim_device *is;
    uint32_t wire;               /* what packets call it */
    struct drv_context *primary; /* made at the first retain, for good */
    unsigned primary_flags;
    unsigned primary_references;
    struct drv_pool *pool;         /* the default one */
    struct drv_pool *current_pool; /* what stream-ordered allocations come from */
};

struct drv_context {
    struct drv_context *next; /* of all */
    struct drv_device *device;
    uint64_t id;   /* never used twice */
    uint32_t wire; /* what commands call it; 0: not alive */
    bool live;
    bool primary;
    unsigned flags;
    unsigned api_version;
    enum drv_result error;               /* sticky: of every later call */
    struct drv_stream *legacy;           /* number 0 */
    struct drv_stream *streams;          /* all, legacy and per-thread ones included */
    struct drv_stream *records;          /* where drv_context_record goes */
    struct drv_command *oldest, *newest; /* under way, as submitted */
    struct drv_capture *captures; /* capture.c's list of those that have begun and not ended */
    void *modules;                /* module.c's list; see drv_module_context_gone */
    uint64_t limit[16];           /* by the vendor's number */
};

struct drv_stream {
    struct drv_stream *next; /* of its context */
    struct drv_context *context;
    uint32_t number; /* on the wire: 0 for the legacy one */
    bool blocking;   /* it and the legacy stream wait for each other */
    bool destroyed;
    uint64_t thread;             /* whose default stream it is; 0: nobody's */
    struct drv_stream *next_own; /* of those that are a thread's */
    uint64_t id;
    int priority;
    unsigned references;         /* its handle, and each command under way */
    uint64_t submitted, done;    /* commands ever: they end in order */
    uint64_t last;               /* sequence number of the newest */
    struct drv_capture *capture; /* capture.c's; NULL: it does not capture */
    void *captured;              /* capture.c's: what the next captured node depends on */
};

struct drv_event {
    struct drv_context *context;
    bool timing;
    bool blocking; /* who waits for it sleeps; here everybody does */
    bool destroyed;
    bool recorded;
    unsigned references;
    uint64_t pending;            /* sequence number of the newest record, until that is complete */
    uint64_t end_ns;             /* in device time, of the newest record that is complete */
    struct drv_capture *capture; /* capture.c's: its newest record is in that capture */
    void *captured;              /* capture.c's: the nodes it stands for */
};

/* A range of memory that devices may use. */
enum drv_memory_kind { DRV_DEVICE_MEMORY, DRV_PINNED, DRV_REGISTERED, DRV_MANAGED };

struct drv_memory {
    uint64_t address;
    uint64_t bytes;    /* as asked for */
    uint64_t reserved; /* as taken */
    uint64_t id;
    enum drv_memory_kind kind;
    unsigned flags; /* the vendor's, of pinned memory */
    struct drv_context *context;
    struct drv_pool *pool;   /* it is stream-ordered */
    bool leaving;            /* its stream will free it, or has */
    struct drv_memory *next; /* of those whose stream has */
};

struct drv_pool {
    struct drv_device *device;
    uint64_t threshold; /* bytes that it keeps; here it keeps none */
    uint64_t used, used_high;
};

/* A kernel of a module that is loaded into a context. module.c's. */
struct drv_launch;
typedef enum drv_result (*drv_compute)(const struct drv_launch *launch);

struct drv_parameter {
    uint32_t offset, size;
};

enum drv_special { DRV_ORDINARY, DRV_SPIN, DRV_WAIT_FLAG };

struct drv_function {
    const char *name;
    void *module;    /* module.c's; NULL of a library's kernel that is not in a context */
    uint32_t kernel; /* what commands call it (KREX_SIM_KERNEL) */
    enum drv_special special;
    drv_compute compute; /* NULL: it only takes time */
    const struct drv_parameter *parameter;
    uint32_t parameters;
    uint32_t parameter_bytes; /* packed */
    uint32_t max_threads;     /* in a block */
    uint32_t registers, shared_bytes, const_bytes, local_bytes;
    uint32_t max_dynamic_shared;
    int carveout;
    uint32_t ptx_version, binary_version; /* 80: 8.0 */
};

struct drv_launch {
    const struct drv_function *function;
    uint32_t grid[3], block[3];
    uint32_t shared; /* dynamic, bytes */
    bool cooperative;
    const unsigned char *parameters; /* packed; parameter_bytes of the function */
};

/* Rows of bytes; one row where it is a plain copy. Addresses are the program's (see drv_memory_at). */
struct drv_copy {
    uint64_t to, from;
    uint64_t width, rows, planes;
    uint64_t to_pitch, from_pitch, to_slice, from_slice; /* bytes from row to row, plane to plane */
};

struct drv_fill {
    uint64_t to;
    uint64_t width, rows, pitch; /* width in elements, pitch in bytes */
    uint32_t value;
    uint32_t element; /* bytes: 1, 2, 4 */
};

struct drv_callback {
    void (*function)(void *); /* what a helper calls, without locks */
    void *argument;
    void (*call)(
        const struct drv_callback *); /* a face's own way to call; NULL: function(argument) */
    void *handle;                     /* for it */
};

enum drv_compare { DRV_GREATER_EQUAL, DRV_EQUAL, DRV_AND, DRV_NOR };

struct drv_wait {
    uint64_t address, value, mask; /* mask: of what is compared */
    enum drv_compare compare;
    uint32_t bytes; /* of the word: 4, 8 */
};

/* What is submitted: on its way to a stream, under way, or kept by a graph's node. `owned` belongs to
 * it, and the parameters of a launch, or a staged copy's source, lie there. */
struct drv_work {
    uint32_t kind;  /* enum krex_sim_kind */
    uint32_t flags; /* KREX_SIM_EXPLICIT, KREX_SIM_HELD, KREX_SIM_ALL */
    uint64_t amount, blocks;
    uint32_t threads, kernel;
    enum drv_result (*effect)(struct drv_work *); /* when it is complete, on the worker; or NULL */
    bool (*turn)(struct drv_work *); /* of a HOST or held RUN: on a helper, again until true */
    bool watches;                    /* its turn is a look at a word, and never blocks */
    unsigned char *owned;
    size_t owned_bytes;
    struct drv_event *event; /* it records this one (counted) */
    union {
        struct drv_launch launch; /* of a RUN */
        struct drv_copy copy;     /* of a COPY_* */
        struct drv_fill fill;     /* of a FILL */
        struct drv_callback callback;
        struct drv_wait wait; /* of a HOST that waits for, or an EVENT that writes, a word */
        struct drv_memory *memory;
    };
};

/* What an effect or a turn gets for its work may be read there without a lock: nobody else has it.
 * Both of these are locked; false: no memory, and *to is empty. */
bool drv_work_copy(struct drv_work *to, const struct drv_work *from);
void drv_work_drop(struct drv_work *work); /* what it owns, and its event */

/* driver.c */
void drv_lock(void);
void drv_unlock(void);
enum drv_result drv_init(void);  /* connects; done once, and by others waited for */
enum drv_result drv_ready(void); /* DRV_OK, or NOT_INITIALIZED (also in a forked child) or LOST */
unsigned drv_devices(void);      /* those that the program may see */
struct drv_device *drv_device(unsigned ordinal); /* NULL: there is none */
uint64_t drv_thread(void);                       /* 1, 2, ...: the caller's number */

/* bus.c: a PCI bus for each; its id may come without the domain and the function. NULL: there is none. */
unsigned drv_bus(const struct drv_device *device);
struct drv_device *drv_device_on(const char *bus_id);

/* channel.c: a packet out and its answer in. `packet` is both. DRV_LOST: nobody answers. */
enum drv_result drv_packet(struct krex_sim_packet *packet);
enum drv_result drv_status(uint32_t status); /* of an enum krex_sim_status */
bool drv_lost(void);
void drv_lose(void); /* all waits end */

/* submit.c. Blocks while the launch queue is full. Takes over what work owns, whether it succeeds or not.
 * `after`: up to KREX_SIM_AFTER sequence numbers, or NULL. *seq may be NULL. On a stream that captures
 * the work goes to drv_capture_append instead, and *seq is 0. */
enum drv_result drv_submit(struct drv_stream *stream, struct drv_work *work, const uint64_t *after,
                           unsigned count, uint64_t *seq);
enum drv_result drv_wait_seq(struct drv_context *context, uint64_t seq); /* until it is complete */
bool drv_under_way(uint64_t seq);                                        /* locked */

/* context.c */
enum drv_result drv_context_create(struct drv_device *device, unsigned flags,
                                   struct drv_context **made);
enum drv_result drv_context_destroy(struct drv_context *context);
enum drv_result drv_primary_retain(struct drv_device *device, struct drv_context **context);
enum drv_result drv_primary_release(struct drv_device *device);
enum drv_result drv_primary_reset(struct drv_device *device);
enum drv_result drv_context_synchronize(struct drv_context *context);
enum drv_result drv_context_idle(struct drv_context *context); /* the same, whatever captures say */
struct drv_context *drv_current(void); /* of this thread; may be a destroyed one; NULL: none */
void drv_set_current(struct drv_context *context);
enum drv_result drv_push_current(struct drv_context *context);
struct drv_context *drv_pop_current(void);
/* DRV_OK if there is a current context that lives and has no sticky error; *context is it. */
enum drv_result drv_use_context(struct drv_context **context);
/* For all in the context: record, or make all wait. Invalidates captures (capture.c). */
enum drv_result drv_context_record(struct drv_context *context, struct drv_event *event);
enum drv_result drv_context_wait(struct drv_context *context, struct drv_event *event);

/* stream.c */
enum drv_result drv_stream_create(struct drv_context *context, bool blocking, int priority,
                                  struct drv_stream **made);
enum drv_result drv_stream_destroy(struct drv_stream *stream);
struct drv_stream *drv_stream_per_thread(struct drv_context *context); /* NULL: no memory */
enum drv_result drv_stream_synchronize(struct drv_stream *stream);
enum drv_result drv_stream_query(struct drv_stream *stream); /* DRV_NOT_READY: not done */
enum drv_result drv_stream_wait(struct drv_stream *stream, struct drv_event *event);
void drv_stream_release(struct drv_stream *stream); /* locked */

/* event.c */
enum drv_result drv_event_create(struct drv_context *context, bool timing, bool blocking,
                                 struct drv_event **made);
enum drv_result drv_event_destroy(struct drv_event *event);
enum drv_result drv_event_record(struct drv_event *event, struct drv_stream *stream);
enum drv_result drv_event_query(struct drv_event *event);
enum drv_result drv_event_synchronize(struct drv_event *event);
enum drv_result drv_event_elapsed(struct drv_event *from, struct drv_event *to, float *ms);
void drv_event_release(struct drv_event *event); /* locked */
/* The work of a record, for streams and for graphs' nodes. Counts the event. Locked. */
struct drv_work drv_event_work(struct drv_event *event);

/* memory.c */
enum drv_result drv_memory_init(void);
enum drv_result drv_memory_allocate(struct drv_context *context, uint64_t bytes,
                                    struct drv_memory **made); /* on its device */
enum drv_result drv_memory_host(struct drv_context *context, uint64_t bytes,
                                enum drv_memory_kind kind, unsigned flags,
                                struct drv_memory **made);
enum drv_result drv_memory_register(struct drv_context *context, uint64_t address, uint64_t bytes,
                                    unsigned flags);
enum drv_result drv_memory_unregister(uint64_t address);
enum drv_result drv_memory_free(struct drv_memory *memory); /* at once: whoever calls has waited */
enum drv_result drv_memory_free_address(uint64_t address, bool host); /* waits for its context */
enum drv_result drv_memory_info(struct drv_context *context, uint64_t *free, uint64_t *all);
void drv_memory_context_gone(struct drv_context *context);
void drv_memory_settle(void); /* gives back what streams have freed */
/* A copy of what is known about the range that address lies in; false: none. From anywhere. */
bool drv_memory_find(uint64_t address, struct drv_memory *found);
/* Where an effect finds what the device calls address; NULL if not all the bytes are in one range that
 * the device may use: an illegal address. From anywhere. */
void *drv_memory_at(uint64_t address, uint64_t bytes);
bool drv_memory_is_device(uint64_t address); /* lies where the host may not reach */
enum drv_result drv_allocate_async(struct drv_pool *pool, struct drv_stream *stream, uint64_t bytes,
                                   uint64_t *address);
enum drv_result drv_free_async(struct drv_stream *stream, uint64_t address);

/* pool.c */
enum drv_result drv_pool_create(struct drv_device *device, struct drv_pool **made);
void drv_pool_destroy(struct drv_pool *pool);
enum drv_result drv_pool_default(struct drv_device *device, struct drv_pool **pool);
enum drv_result drv_pool_current(struct drv_device *device, struct drv_pool **pool);

/* copy.c. `async`: the call that doesn't wait for the copy where the hardware wouldn't make it. */
enum drv_result drv_copy(struct drv_stream *stream, const struct drv_copy *copy, bool async);
enum drv_result drv_fill(struct drv_stream *stream, const struct drv_fill *fill);
enum drv_result drv_copy_work(const struct drv_copy *copy,
                              struct drv_work *work); /* for nodes too */
enum drv_result drv_fill_work(const struct drv_fill *fill, struct drv_work *work);

/* occupancy.c: how many such blocks a multiprocessor holds, by threads, registers and shared memory. */
struct drv_block {
    const struct drv_function *function;
    uint64_t threads, dynamic; /* shared memory, bytes */
};
uint64_t drv_blocks_held(const struct drv_block *block);
/* The shape of most threads there: *threads of a block, which are `limit` at most (0: no limit). dynamic_of
 * may be NULL: then each has `dynamic` bytes. How many blocks of it are held; 0: none is. */
uint64_t drv_best_block(const struct drv_function *function, int limit,
                        size_t (*dynamic_of)(int threads), size_t dynamic, int *threads);

/* launch.c. Checks the dimensions and packs the parameters; what it gives can be submitted, or kept. */
struct drv_shape {
    uint32_t grid[3], block[3];
    uint32_t shared;
    bool cooperative;
};
/* parameters: an address for each; or NULL and they come packed, as `packed_bytes` at `packed`. */
enum drv_result drv_launch_work(const struct drv_device *device,
                                const struct drv_function *function, const struct drv_shape *shape,
                                void *const *parameters, const void *packed, size_t packed_bytes,
                                struct drv_work *work);
/* What stands in `extra` in place of addresses, up to the vendor's mark of its end. false: it is nonsense. */
struct drv_packed {
    const void *bytes;
    size_t size;
};
bool drv_read_extra(void *const *extra, struct drv_packed *packed);
struct drv_work drv_callback_work(const struct drv_callback *callback);
struct drv_work drv_wait_work(const struct drv_wait *wait);  /* HOST: until the word is so */
struct drv_work drv_write_work(const struct drv_wait *wait); /* writes the word */
struct drv_work drv_nothing_work(void);                      /* takes no time: an order only */

/* What capture.c offers to the files above. All are called locked, unless said otherwise. */

/* Work for a stream that captures; takes over what it owns. */
enum drv_result drv_capture_append(struct drv_stream *stream, struct drv_work *work);
/* Work is about to go to a stream that doesn't capture: DRV_CAPTURE_IMPLICIT, and the captures are
 * invalid, if it is the legacy one and a blocking one of its context captures. */
enum drv_result drv_capture_check_submit(struct drv_stream *stream);
/* A call that captures forbid (allocation, a query or a wait that is not of a stream): the result that it
 * has to give instead if a capture is open that this thread's mode minds; that one is invalid then. */
enum drv_result drv_capture_check_unsafe(struct drv_context *context);
/* A wait for, or a query of, the stream: an error, and the capture is invalid, if it captures. */
enum drv_result drv_capture_check_stream(struct drv_stream *stream);
/* A wait for, or a query of, an event: DRV_CAPTURED_EVENT if its newest record was captured, and that
 * capture is invalid then. */
enum drv_result drv_capture_check_event(struct drv_event *event);
/* A wait for all of the context, or its event (drv_context_record): an error if any stream captures;
 * those captures are invalid then. */
enum drv_result drv_capture_check_context(struct drv_context *context);
/* stream->capture is set, or (wait) event->capture is: the record or the wait is captured. */
enum drv_result drv_capture_record(struct drv_stream *stream, struct drv_event *event);
enum drv_result drv_capture_wait(struct drv_stream *stream, struct drv_event *event);
void drv_capture_event_forget(struct drv_event *event);  /* recorded anew, or destroyed */
void drv_capture_stream_gone(struct drv_stream *stream); /* destroyed */
void drv_capture_context_gone(struct drv_context *context);
/* module.c: what a face takes for a function: DRV_FUNCTION, or a library's DRV_KERNEL, which is loaded into
 * the context if it isn't yet. DRV_INVALID_HANDLE: neither. Not locked. */
enum drv_result drv_function_of(struct drv_context *context, const void *handle,
                                const struct drv_function **function);
/* module.c: the context's modules, and what they have in memory, are no more. Not locked. */
void drv_module_context_gone(struct drv_context *context);

#endif
