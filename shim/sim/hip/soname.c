/* SPDX-License-Identifier: Apache-2.0
 *
 * All that is in a library under one of the names that programs were linked with: nothing. Each leads to
 * libamdhip64.so, which a process must have once; links would do, but a package can't carry them.
 */
