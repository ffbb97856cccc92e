/* SPDX-License-Identifier: Apache-2.0
 *
 * Code in a context (modules, with their functions and variables), and code that may come into any
 * (libraries, with their kernels).
 *
 * Where the vendor loads modules lazily, a kernel comes to a device when it is launched in that context
 * for the first time.
 */
#ifndef KREX_SIM_DRIVER_MODULE_H
#define KREX_SIM_DRIVER_MODULE_H

#include "image.h"

struct drv_library;

struct drv_module {
    struct drv_module *next;     /* of its context */
    struct drv_module *sibling;  /* of its library; library.c's */
    struct drv_library *library; /* or NULL */
    struct drv_context *context;
    struct drv_code *code;
    struct drv_module_function *functions; /* module.c's */
    uint32_t function_count;
    uint64_t *addresses;         /* of the variables */
    struct drv_memory *block[2]; /* where they are: the device's own ones, managed ones */
    bool unloaded;
    unsigned references; /* of graphs */
};

/* What a library has of a kernel; it is no function of a context: is.module is NULL. */
struct drv_kernel {
    struct drv_function is;
    struct drv_library *library;
};

/* An image that several modules may have come from. Counted; locked, but for making one. */
struct drv_code {
    struct drv_image image;
    unsigned references;
};

enum drv_result drv_code_read(const void *data, size_t size, struct drv_code **code);
enum drv_result drv_code_read_file(const char *path, struct drv_code **code);
void drv_code_release(struct drv_code *code);
/* Fills in what the image says of its kernel number `index`, for a device. */
void drv_code_describe(const struct drv_code *code, const struct drv_device *device, uint32_t index,
                       struct drv_function *function);

/* Takes a reference of the caller's to the code, whether it succeeds or not. */
enum drv_result drv_module_load(struct drv_context *context, struct drv_code *code,
                                struct drv_library *library, struct drv_module **made);
void drv_module_unload(struct drv_module *module);
struct drv_function *drv_module_function(struct drv_module *module, uint32_t index);
enum drv_result drv_module_find_function(struct drv_module *module, const char *name,
                                         struct drv_function **function);
enum drv_result drv_module_find_variable(struct drv_module *module, const char *name,
                                         uint64_t *address, uint64_t *bytes);

/* Brings it to the device, unless it is there; may wait. */
enum drv_result drv_function_load(struct drv_function *function);
struct drv_context *drv_function_context(const struct drv_function *function);
bool drv_function_is_loaded(const struct drv_function *function);
/* What keeps a function after its module was unloaded: a graph's node. Locked. */
void drv_function_hold(const struct drv_function *function);
void drv_function_release(const struct drv_function *function);

/* Waits while a kernel is being loaded into the context: on a real driver that holds the context's lock,
 * so that every other call there waits too. For the beginning of such calls. Not locked. */
void drv_loading_wait(struct drv_context *context);

bool drv_modules_load_lazily(void);

/* catalogue.c: what the function computes, if anything, by its name and the sizes of its parameters. */
void drv_catalogue_look_up(struct drv_function *function);

/* library.c. A library's code comes into a context when somebody asks for it there. */
enum drv_result drv_library_load(struct drv_code *code, struct drv_library **made);
void drv_library_unload(struct drv_library *library);
struct drv_kernel *drv_library_kernel(struct drv_library *library, uint32_t index);
uint32_t drv_library_kernels(const struct drv_library *library);
enum drv_result drv_library_find_kernel(struct drv_library *library, const char *name,
                                        struct drv_kernel **kernel);
enum drv_result drv_library_module(struct drv_library *library, struct drv_context *context,
                                   struct drv_module **module);
enum drv_result drv_kernel_function(struct drv_kernel *kernel, struct drv_context *context,
                                    struct drv_function **function);
/* What was set for the kernel is so for its functions, in whatever context. */
void drv_kernel_changed(const struct drv_kernel *kernel);
/* Locked. A module of it was made, or is no more. */
void drv_library_enlist(struct drv_module *module);
void drv_library_forget(struct drv_module *module);

#endif
