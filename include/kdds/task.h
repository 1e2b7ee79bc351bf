/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * Typed task declarations. KDDS_TASK(fib, VALUE(int, n), WRITE(long, r)) generates, from one list
 * of parameters, the struct of the closure, the task type with its access table, the function that
 * pushes a closure, and the signature of the body.
 *
 * The implementation pastes a parameter READ(long, a) to KD_TUPLE_, which makes it the tuple
 * (KD_READ, long, a, NULL). Each generator then pastes the kind to its own prefix: KD_FIELD_KD_READ
 * generates the field of the closure, KD_ARG_KD_READ the argument of the push function, and so on.
 * READ itself is only pasted, so KDDS_READ works where another header defines READ as a macro.
 *
 * A generated name is kd_, one word without an underscore, and the name that the program has given.
 * So tasks sum and loop_sum do not meet.
 */
#ifndef KDDS_TASK_H
#define KDDS_TASK_H

/* The macros below use GNU C (empty variadic lists, transparent unions). This pragma lets programs
 * compile with -pedantic. */
#pragma GCC system_header

#ifdef __cplusplus
#include <exception>
#include <type_traits>
#endif

#include "kdds/inline.h"

/** @cond internal */
#define KD_CAT(a, b) KD_CAT_(a, b)
#define KD_CAT_(a, b) a##b
/* ISO C needs t and _: a macro without other parameters would see one empty argument instead of
 * none, and "..." must match at least one argument. */
#define KD_COUNT(t, ...) KD_COUNT_(t, ##__VA_ARGS__, MORE, MORE, MORE, MORE, MORE, MORE, MORE, MORE, \
				16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, _)
#define KD_COUNT_(t, a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18, a19, a20, a21, a22, \
		  a23, a24, n, ...) n

#define KD_MAP(m, t, ...) KD_CAT(KD_MAP_, KD_COUNT(t, ##__VA_ARGS__))(m, t, ##__VA_ARGS__)
#define KD_MAP_0(m, t)
#define KD_MAP_1(m, t, x) m(t, x)
#define KD_MAP_2(m, t, x, ...) m(t, x) KD_MAP_1(m, t, __VA_ARGS__)
#define KD_MAP_3(m, t, x, ...) m(t, x) KD_MAP_2(m, t, __VA_ARGS__)
#define KD_MAP_4(m, t, x, ...) m(t, x) KD_MAP_3(m, t, __VA_ARGS__)
#define KD_MAP_5(m, t, x, ...) m(t, x) KD_MAP_4(m, t, __VA_ARGS__)
#define KD_MAP_6(m, t, x, ...) m(t, x) KD_MAP_5(m, t, __VA_ARGS__)
#define KD_MAP_7(m, t, x, ...) m(t, x) KD_MAP_6(m, t, __VA_ARGS__)
#define KD_MAP_8(m, t, x, ...) m(t, x) KD_MAP_7(m, t, __VA_ARGS__)
#define KD_MAP_9(m, t, x, ...) m(t, x) KD_MAP_8(m, t, __VA_ARGS__)
#define KD_MAP_10(m, t, x, ...) m(t, x) KD_MAP_9(m, t, __VA_ARGS__)
#define KD_MAP_11(m, t, x, ...) m(t, x) KD_MAP_10(m, t, __VA_ARGS__)
#define KD_MAP_12(m, t, x, ...) m(t, x) KD_MAP_11(m, t, __VA_ARGS__)
#define KD_MAP_13(m, t, x, ...) m(t, x) KD_MAP_12(m, t, __VA_ARGS__)
#define KD_MAP_14(m, t, x, ...) m(t, x) KD_MAP_13(m, t, __VA_ARGS__)
#define KD_MAP_15(m, t, x, ...) m(t, x) KD_MAP_14(m, t, __VA_ARGS__)
#define KD_MAP_16(m, t, x, ...) m(t, x) KD_MAP_15(m, t, __VA_ARGS__)
#define KD_MAP_MORE(m, t, ...) a_kdds_task_has_at_most_16_parameters

#define KD_TUPLE_VALUE(T, n) KD_VALUE, T, n, NULL
#define KD_TUPLE_READ(T, n) KD_READ, T, n, NULL
#define KD_TUPLE_WRITE(T, n) KD_WRITE, T, n, NULL
#define KD_TUPLE_UPDATE(T, n) KD_UPDATE, T, n, NULL
#define KD_TUPLE_REDUCE(T, n, op) KD_REDUCE, T, n, op
#define KD_TUPLE_READ_ARRAY(T, n) KD_READ_ARRAY, T, n, NULL
#define KD_TUPLE_WRITE_ARRAY(T, n) KD_WRITE_ARRAY, T, n, NULL
#define KD_TUPLE_UPDATE_ARRAY(T, n) KD_UPDATE_ARRAY, T, n, NULL
#define KD_TUPLE_REDUCE_ARRAY(T, n, op) KD_REDUCE_ARRAY, T, n, op
#define KD_TUPLE_READ_LIST(T, n) KD_READ_LIST, T, n, NULL
#define KD_TUPLE_WRITE_LIST(T, n) KD_WRITE_LIST, T, n, NULL
#define KD_TUPLE_UPDATE_LIST(T, n) KD_UPDATE_LIST, T, n, NULL
#define KD_TUPLE_RANGE(n) KD_VALUE, struct kdds_range, n, NULL
#define KD_TUPLE_READ_EACH KD_TUPLE_READ_ARRAY
#define KD_TUPLE_WRITE_EACH KD_TUPLE_WRITE_ARRAY
#define KD_TUPLE_UPDATE_EACH KD_TUPLE_UPDATE_ARRAY
/* the names with a prefix, for programs in which READ is a macro */
#define KD_TUPLE_KDDS_VALUE KD_TUPLE_VALUE
#define KD_TUPLE_KDDS_READ KD_TUPLE_READ
#define KD_TUPLE_KDDS_WRITE KD_TUPLE_WRITE
#define KD_TUPLE_KDDS_UPDATE KD_TUPLE_UPDATE
#define KD_TUPLE_KDDS_REDUCE KD_TUPLE_REDUCE
#define KD_TUPLE_KDDS_READ_ARRAY KD_TUPLE_READ_ARRAY
#define KD_TUPLE_KDDS_WRITE_ARRAY KD_TUPLE_WRITE_ARRAY
#define KD_TUPLE_KDDS_UPDATE_ARRAY KD_TUPLE_UPDATE_ARRAY
#define KD_TUPLE_KDDS_REDUCE_ARRAY KD_TUPLE_REDUCE_ARRAY
#define KD_TUPLE_KDDS_READ_LIST KD_TUPLE_READ_LIST
#define KD_TUPLE_KDDS_WRITE_LIST KD_TUPLE_WRITE_LIST
#define KD_TUPLE_KDDS_UPDATE_LIST KD_TUPLE_UPDATE_LIST
#define KD_TUPLE_KDDS_RANGE KD_TUPLE_RANGE
#define KD_TUPLE_KDDS_READ_EACH KD_TUPLE_READ_EACH
#define KD_TUPLE_KDDS_WRITE_EACH KD_TUPLE_WRITE_EACH
#define KD_TUPLE_KDDS_UPDATE_EACH KD_TUPLE_UPDATE_EACH
#define KD_APPLY(...) KD_APPLY_(__VA_ARGS__)
#define KD_APPLY_(prefix, t, kind, T, n, op) prefix##kind(t, T, n, op)
/* For generators that only distinguish values, what is only read, what is written, and lists. */
#define KD_SORT(...) KD_SORT_(__VA_ARGS__)
#define KD_SORT_(prefix, t, kind, T, n, op) KD_APPLY(prefix, t, KD_SORT_##kind, T, n, op)
#define KD_SORT_KD_VALUE KD_VALUE
#define KD_SORT_KD_READ KD_READ
#define KD_SORT_KD_WRITE KD_WRITE
#define KD_SORT_KD_UPDATE KD_WRITE
#define KD_SORT_KD_REDUCE KD_WRITE
#define KD_SORT_KD_READ_ARRAY KD_READ
#define KD_SORT_KD_WRITE_ARRAY KD_WRITE
#define KD_SORT_KD_UPDATE_ARRAY KD_WRITE
#define KD_SORT_KD_REDUCE_ARRAY KD_WRITE
#define KD_SORT_KD_READ_LIST KD_READ_LIST
#define KD_SORT_KD_WRITE_LIST KD_WRITE_LIST
#define KD_SORT_KD_UPDATE_LIST KD_WRITE_LIST

/* These enclose the functions that the library calls: an exception that leaves one would unwind the
 * scheduler. */
#if defined(__cplusplus) && defined(__cpp_exceptions)
[[noreturn]] __attribute__((cold, noinline))
static inline void kd_caught(const char *what, const char *name)
{
	try {
		throw;
	} catch (const std::exception &e) {
		kdds_exception(what, name, e.what());
	} catch (...) {
		kdds_exception(what, name, "of a type of its own");
	}
}
#define KD_TRY try {
#define KD_CATCH(what, name) } catch (...) { kd_caught(what, name); }
__attribute__((cold, noinline))
static inline void kd_caught_in(const struct kdds_type *type)
{
	try {
		throw;
	} catch (const std::exception &e) {
		kdds_fail_task(type, KDDS_EXCEPTION, e.what());
	} catch (...) {
		kdds_fail_task(type, KDDS_EXCEPTION, "an exception of a type of its own");
	}
}
#define KD_CATCH_IN(room) } catch (...) { (room).failed = 1; kd_caught_in((room).type); }
#else
#define KD_TRY
#define KD_CATCH(what, name)
#define KD_CATCH_IN(room)
#endif

/* compile-time checks of what a closure can hold, and of what can be sent to another process */
#ifdef __cplusplus
#define KD_ASSERT(condition, text) static_assert(condition, text);
#define KD_IS_BYTES(T) std::is_trivially_copyable<T>::value
#define KD_IS_OVER(op, T) std::is_same<decltype((op)->kd_type), T *>::value
#else
#define KD_ASSERT(condition, text) _Static_assert(condition, text);
#define KD_IS_BYTES(T) 1
#define KD_IS_OVER(op, T) __builtin_types_compatible_p(__typeof__((op)->kd_type), T *)
#endif
#define KD_AT(t, n) "task " #t ", parameter " #n ": "
#define KD_CHECK(t, x) KD_APPLY(KD_CHECK_, t, KD_TUPLE_##x)
#define KD_CHECK_KD_VALUE(t, T, n, op) \
	KD_ASSERT(sizeof(T) <= KD_CLOSURE_MAX - sizeof(struct kdds_closure), \
		  KD_AT(t, n) "a closure has no room for a VALUE of 64 KiB or more: share it") \
	KD_ASSERT(__alignof__(T) <= 16, \
		  KD_AT(t, n) "a VALUE cannot be aligned to more than 16 bytes: share it") \
	KD_ASSERT(KD_IS_BYTES(T), \
		  KD_AT(t, n) "a VALUE is copied as bytes, but this type is not trivially copyable")
#define KD_CHECK_KD_READ(t, T, n, op) \
	KD_ASSERT(sizeof(T) <= UINT32_MAX, \
		  KD_AT(t, n) "a single data has less than 4 GiB: share an array of less") \
	KD_ASSERT(__alignof__(T) <= KD_ALIGN_MAX, \
		  KD_AT(t, n) "copies of shared data are aligned to 4096 bytes at most")
#define KD_CHECK_KD_WRITE KD_CHECK_KD_READ
#define KD_CHECK_KD_UPDATE KD_CHECK_KD_READ
#define KD_CHECK_KD_REDUCE(t, T, n, op) \
	KD_CHECK_KD_READ(t, T, n, op) \
	KD_ASSERT(KD_IS_BYTES(T), \
		  KD_AT(t, n) "what is reduced is copied as bytes, but this type is not "\
		  "trivially copyable") \
	KD_ASSERT(KD_IS_OVER(op, T), \
		  KD_AT(t, n) "the operator is over another type")
#define KD_CHECK_KD_READ_ARRAY KD_CHECK_KD_READ
#define KD_CHECK_KD_WRITE_ARRAY KD_CHECK_KD_READ
#define KD_CHECK_KD_UPDATE_ARRAY KD_CHECK_KD_READ
#define KD_CHECK_KD_REDUCE_ARRAY KD_CHECK_KD_REDUCE
#define KD_CHECK_KD_READ_LIST KD_CHECK_KD_READ
#define KD_CHECK_KD_WRITE_LIST KD_CHECK_KD_READ
#define KD_CHECK_KD_UPDATE_LIST KD_CHECK_KD_READ

/* Nobody constructs new data. */
#define KD_NEW(T) \
	KD_ASSERT(KD_IS_BYTES(T), \
		  "new data are not initialised, but this type is not trivially copyable: " \
		  "construct an object and use KDDS_OVER")

/* The declaration and the definition of a task must agree in this type. */
#define KD_MODE(t, x) KD_MODE_(t, KD_TUPLE_##x)
#define KD_MODE_(...) KD_MODE_IS(__VA_ARGS__)
#define KD_MODE_IS(t, kind, T, n, op) typedef struct kind kd_modeof_##n##_in_##t;

/* the fields of the closure */
#define KD_FIELD(t, x) KD_APPLY(KD_FIELD_, t, KD_TUPLE_##x)
#define KD_FIELD_KD_VALUE(t, T, n, op) __typeof__(T) n;
#define KD_FIELD_KD_READ(t, T, n, op) struct kdds_access n;
#define KD_FIELD_KD_WRITE KD_FIELD_KD_READ
#define KD_FIELD_KD_UPDATE KD_FIELD_KD_READ
#define KD_FIELD_KD_REDUCE(t, T, n, op) \
	struct { \
		struct kdds_access_reduce r; \
		char room[KD_HAS_ROOM(T) ? sizeof(T) : 0] \
			__attribute__((aligned(KD_HAS_ROOM(T) ? __alignof__(T) : 1))); \
	} n;
/* The library allocates private copies that are larger, or that a closure cannot align. */
#define KD_HAS_ROOM(T) (sizeof(T) <= KD_ROOM_MAX && __alignof__(T) <= 16)
#define KD_FIELD_KD_READ_ARRAY(t, T, n, op) struct kdds_access_array n;
#define KD_FIELD_KD_WRITE_ARRAY KD_FIELD_KD_READ_ARRAY
#define KD_FIELD_KD_UPDATE_ARRAY KD_FIELD_KD_READ_ARRAY
#define KD_FIELD_KD_REDUCE_ARRAY KD_FIELD_KD_READ_ARRAY
#define KD_FIELD_KD_READ_LIST(t, T, n, op) struct kdds_list_items n;
#define KD_FIELD_KD_WRITE_LIST KD_FIELD_KD_READ_LIST
#define KD_FIELD_KD_UPDATE_LIST KD_FIELD_KD_READ_LIST

/* the rows of the access table, and their number */
#define KD_ROW(t, x) KD_APPLY(KD_ROW_, t, KD_TUPLE_##x)
#define KD_ROW_KD_VALUE(t, T, n, op)
#define KD_ROW_(t, T, n, mode, array, room, op) \
	{offsetof(struct kd_closure_##t, n), mode, array, KD_IS_POINTER(*(T *)0) || !KD_IS_BYTES(T), sizeof(T), \
	 room, op, #n},
#define KD_ROW_KD_READ(t, T, n, op) KD_ROW_(t, T, n, KDDS_R, 0, 0, op)
#define KD_ROW_KD_WRITE(t, T, n, op) KD_ROW_(t, T, n, KDDS_W, 0, 0, op)
#define KD_ROW_KD_UPDATE(t, T, n, op) KD_ROW_(t, T, n, KDDS_RW, 0, 0, op)
#define KD_ROW_KD_REDUCE(t, T, n, op) \
	KD_ROW_(t, T, n, KDDS_CW, 0, KD_HAS_ROOM(T) ? offsetof(struct kd_closure_##t, n.room) : 0, \
		&(op)->kd_op)
#define KD_ROW_KD_READ_ARRAY(t, T, n, op) KD_ROW_(t, T, n, KDDS_R, 1, 0, op)
#define KD_ROW_KD_WRITE_ARRAY(t, T, n, op) KD_ROW_(t, T, n, KDDS_W, 1, 0, op)
#define KD_ROW_KD_UPDATE_ARRAY(t, T, n, op) KD_ROW_(t, T, n, KDDS_RW, 1, 0, op)
#define KD_ROW_KD_REDUCE_ARRAY(t, T, n, op) KD_ROW_(t, T, n, KDDS_CW, 1, 0, &(op)->kd_op)
#define KD_ROW_KD_READ_LIST(t, T, n, op) KD_ROW_(t, T, n, KDDS_R, KD_LIST, 0, op)
#define KD_ROW_KD_WRITE_LIST(t, T, n, op) KD_ROW_(t, T, n, KDDS_W, KD_LIST, 0, op)
#define KD_ROW_KD_UPDATE_LIST(t, T, n, op) KD_ROW_(t, T, n, KDDS_RW, KD_LIST, 0, op)
#define KD_ONE(t, x) KD_SORT(KD_ONE_, t, KD_TUPLE_##x)
#define KD_ONE_KD_VALUE(t, T, n, op)
#define KD_ONE_KD_READ(t, T, n, op) +1
#define KD_ONE_KD_WRITE KD_ONE_KD_READ
#define KD_ONE_KD_READ_LIST KD_ONE_KD_VALUE
#define KD_ONE_KD_WRITE_LIST KD_ONE_KD_VALUE
#define KD_LISTED(t, x) KD_SORT(KD_LISTED_, t, KD_TUPLE_##x)
#define KD_LISTED_KD_VALUE(t, T, n, op)
#define KD_LISTED_KD_READ KD_LISTED_KD_VALUE
#define KD_LISTED_KD_WRITE KD_LISTED_KD_VALUE
#define KD_LISTED_KD_READ_LIST(t, T, n, op) +1
#define KD_LISTED_KD_WRITE_LIST KD_LISTED_KD_READ_LIST

#define KD_CWS(t, x) KD_APPLY(KD_CWS_, t, KD_TUPLE_##x)
#define KD_CWS_KD_VALUE(t, T, n, op)
#define KD_CWS_KD_READ KD_CWS_KD_VALUE
#define KD_CWS_KD_WRITE KD_CWS_KD_VALUE
#define KD_CWS_KD_UPDATE KD_CWS_KD_VALUE
#define KD_CWS_KD_REDUCE(t, T, n, op) +1
#define KD_CWS_KD_READ_ARRAY KD_CWS_KD_VALUE
#define KD_CWS_KD_WRITE_ARRAY KD_CWS_KD_VALUE
#define KD_CWS_KD_UPDATE_ARRAY KD_CWS_KD_VALUE
#define KD_CWS_KD_REDUCE_ARRAY KD_CWS_KD_REDUCE
#define KD_CWS_KD_READ_LIST KD_CWS_KD_VALUE
#define KD_CWS_KD_WRITE_LIST KD_CWS_KD_VALUE
#define KD_CWS_KD_UPDATE_LIST KD_CWS_KD_VALUE

/* Does not detect pointers in structs and unions. */
#define KD_IS_POINTER(x) (__builtin_classify_type(x) == 5)
/* is an immediate value a pointer? */
#define KD_POINTS(t, x) KD_SORT(KD_POINTS_, t, KD_TUPLE_##x)
#define KD_POINTS_KD_VALUE(t, T, n, op) | KD_IS_POINTER(((struct kd_closure_##t *)0)->n)
#define KD_POINTS_KD_READ(t, T, n, op)
#define KD_POINTS_KD_WRITE KD_POINTS_KD_READ
#define KD_POINTS_KD_READ_LIST KD_POINTS_KD_VALUE
#define KD_POINTS_KD_WRITE_LIST KD_POINTS_KD_VALUE

/* the initial state of a closure */
#define KD_BORN(t, x) KD_APPLY(KD_BORN_, t, KD_TUPLE_##x)
#define KD_BORN_KD_VALUE(t, T, n, op)
#define KD_BORN_KD_READ KD_BORN_KD_VALUE
#define KD_BORN_KD_WRITE KD_BORN_KD_VALUE
#define KD_BORN_KD_UPDATE KD_BORN_KD_VALUE
#define KD_BORN_KD_REDUCE(t, T, n, op) | (kd_exact(&(op)->kd_op) ? 0 : KD_SPECIAL)
#define KD_BORN_KD_READ_ARRAY KD_BORN_KD_VALUE
#define KD_BORN_KD_WRITE_ARRAY KD_BORN_KD_VALUE
#define KD_BORN_KD_UPDATE_ARRAY KD_BORN_KD_VALUE
#define KD_BORN_KD_REDUCE_ARRAY KD_BORN_KD_REDUCE
#define KD_BORN_KD_READ_LIST KD_BORN_KD_VALUE
#define KD_BORN_KD_WRITE_LIST KD_BORN_KD_VALUE
#define KD_BORN_KD_UPDATE_LIST KD_BORN_KD_VALUE

/* The arguments of kdds_spawn. A reference of the wrong type or constness is a compile-time error.
 * C needs transparent unions for this, because a pointer mismatch would only be a warning; in C++
 * it is an error. */
#define KD_TYPE(t, x) KD_SORT(KD_TYPE_, t, KD_TUPLE_##x)
#define KD_TYPE_KD_VALUE(t, T, n, op)
/* a list, as the body sees it */
#define KD_TYPE_LIST_(t, T, n) typedef struct { T *const *const *ref; size_t count; } kd_list_##t##_##n;
#define KD_ARG(t, x) KD_SORT(KD_ARG_, t, KD_TUPLE_##x)
#define KD_ARG_KD_VALUE(t, T, n, op) , T n
#ifdef __cplusplus
#define KD_TYPE_KD_READ KD_TYPE_KD_VALUE
#define KD_TYPE_KD_WRITE KD_TYPE_KD_VALUE
#define KD_TYPE_KD_READ_LIST(t, T, n, op) KD_TYPE_LIST_(t, T const, n)
#define KD_TYPE_KD_WRITE_LIST(t, T, n, op) KD_TYPE_LIST_(t, T, n)
#define KD_NO_LIST(list) list()
#define KD_ARG_KD_READ(t, T, n, op) , T const *const *n
#define KD_ARG_KD_WRITE(t, T, n, op) , T *const *n
#define KD_ARG_KD_READ_LIST(t, T, n, op) , T const *const *const *n, size_t kd_n_##n
#define KD_ARG_KD_WRITE_LIST(t, T, n, op) , T *const *const *n, size_t kd_n_##n
#define KD_ANCHOR_READ(n) kd_anchor_of(n)
#define KD_ANCHOR_WRITE(n) kd_anchor_of(n)
#define KD_REF_READ(n) (n)
#define KD_REF_WRITE(n) (n)
#else
#define KD_TYPE_KD_READ(t, T, n, op) typedef union { T *const *rw; T const *const *ro; } kd_arg_##t##_##n __attribute__((transparent_union));
#define KD_TYPE_KD_WRITE(t, T, n, op) typedef union { T *const *rw; } kd_arg_##t##_##n __attribute__((transparent_union));
#define KD_TYPE_KD_READ_LIST(t, T, n, op) \
	KD_TYPE_LIST_(t, T const, n) \
	typedef union { T *const *const *rw; T const *const *const *ro; } kd_arg_##t##_##n __attribute__((transparent_union));
#define KD_TYPE_KD_WRITE_LIST(t, T, n, op) \
	KD_TYPE_LIST_(t, T, n) \
	typedef union { T *const *const *rw; } kd_arg_##t##_##n __attribute__((transparent_union));
#define KD_NO_LIST(list) (list){NULL, 0}
#define KD_ARG_KD_READ(t, T, n, op) , kd_arg_##t##_##n n
#define KD_ARG_KD_WRITE KD_ARG_KD_READ
#define KD_ARG_KD_READ_LIST(t, T, n, op) , kd_arg_##t##_##n n, size_t kd_n_##n
#define KD_ARG_KD_WRITE_LIST KD_ARG_KD_READ_LIST
#define KD_ANCHOR_READ(n) kd_anchor_of(n.ro)
#define KD_ANCHOR_WRITE(n) kd_anchor_of(n.rw)
#define KD_REF_READ(n) n.ro
#define KD_REF_WRITE(n) n.rw
#endif

/* Whether the arguments are references. */
#define KD_VALID(t, x) KD_SORT(KD_VALID_, t, KD_TUPLE_##x)
#define KD_VALID_KD_VALUE(t, T, n, op)
#define KD_VALID_KD_READ(t, T, n, op) \
	if (KD_UNLIKELY(!kd_is_reference(KD_REF_READ(n)))) \
		kdds_no_reference(#t, #n);
#define KD_VALID_KD_WRITE(t, T, n, op) \
	if (KD_UNLIKELY(!kd_is_reference(KD_REF_WRITE(n)))) \
		kdds_no_reference(#t, #n);
#define KD_VALID_KD_READ_LIST KD_VALID_KD_VALUE
#define KD_VALID_KD_WRITE_LIST KD_VALID_KD_VALUE

/* Calling the body in place of a push. Whether the arguments allow it (kd_fresh): the links of all,
 * the sums of uses of what is read and of what is written, and contributions one by one. */
#define KD_LINKS(t, x) KD_SORT(KD_LINKS_, t, KD_TUPLE_##x)
#define KD_LINKS_KD_VALUE(t, T, n, op)
#define KD_LINKS_KD_READ(t, T, n, op) | kd_links_of(KD_REF_READ(n))
#define KD_LINKS_KD_WRITE(t, T, n, op) | kd_links_of(KD_REF_WRITE(n))
#define KD_LINKS_KD_READ_LIST KD_LINKS_KD_VALUE
#define KD_LINKS_KD_WRITE_LIST KD_LINKS_KD_VALUE
#define KD_READS(t, x) KD_APPLY(KD_READS_, t, KD_TUPLE_##x)
#define KD_READS_KD_VALUE(t, T, n, op)
#define KD_READS_KD_READ(t, T, n, op) + kd_use_of(KD_ANCHOR_READ(n)) - KD_FREE_USE(0)
#define KD_READS_KD_WRITE KD_READS_KD_VALUE
#define KD_READS_KD_UPDATE KD_READS_KD_VALUE
#define KD_READS_KD_REDUCE KD_READS_KD_VALUE
/* No difference of arrays is negative: two mistakes do not cancel. */
#define KD_READS_KD_READ_ARRAY(t, T, n, op) + (kd_use_of(KD_ANCHOR_READ(n)) ^ KD_FREE_USE(1))
#define KD_READS_KD_WRITE_ARRAY KD_READS_KD_VALUE
#define KD_READS_KD_UPDATE_ARRAY KD_READS_KD_VALUE
#define KD_READS_KD_REDUCE_ARRAY KD_READS_KD_VALUE
#define KD_READS_KD_READ_LIST KD_READS_KD_VALUE
#define KD_READS_KD_WRITE_LIST KD_READS_KD_VALUE
#define KD_READS_KD_UPDATE_LIST KD_READS_KD_VALUE
#define KD_WRITES(t, x) KD_APPLY(KD_WRITES_, t, KD_TUPLE_##x)
#define KD_WRITES_KD_VALUE(t, T, n, op)
#define KD_WRITES_KD_READ KD_WRITES_KD_VALUE
#define KD_WRITES_KD_WRITE(t, T, n, op) + kd_use_of(KD_ANCHOR_WRITE(n)) - KD_FREE_USE(0)
#define KD_WRITES_KD_UPDATE KD_WRITES_KD_WRITE
#define KD_WRITES_KD_REDUCE KD_WRITES_KD_VALUE
#define KD_WRITES_KD_READ_ARRAY KD_WRITES_KD_VALUE
#define KD_WRITES_KD_WRITE_ARRAY(t, T, n, op) + (kd_use_of(KD_ANCHOR_WRITE(n)) ^ KD_FREE_USE(1))
#define KD_WRITES_KD_UPDATE_ARRAY KD_WRITES_KD_WRITE_ARRAY
#define KD_WRITES_KD_REDUCE_ARRAY KD_WRITES_KD_VALUE
#define KD_WRITES_KD_READ_LIST KD_WRITES_KD_VALUE
#define KD_WRITES_KD_WRITE_LIST KD_WRITES_KD_VALUE
#define KD_WRITES_KD_UPDATE_LIST KD_WRITES_KD_VALUE
#define KD_ADDS(t, x) KD_APPLY(KD_ADDS_, t, KD_TUPLE_##x)
#define KD_ADDS_KD_VALUE(t, T, n, op)
#define KD_ADDS_KD_READ KD_ADDS_KD_VALUE
#define KD_ADDS_KD_WRITE KD_ADDS_KD_VALUE
#define KD_ADDS_KD_UPDATE KD_ADDS_KD_VALUE
#define KD_ADDS_KD_REDUCE(t, T, n, op_) \
	&& kd_exact(&(op_)->kd_op) && kd_may_add(kd_type_##t.naccess, KD_ANCHOR_WRITE(n), 0)
#define KD_ADDS_KD_READ_ARRAY KD_ADDS_KD_VALUE
#define KD_ADDS_KD_WRITE_ARRAY KD_ADDS_KD_VALUE
#define KD_ADDS_KD_UPDATE_ARRAY KD_ADDS_KD_VALUE
#define KD_ADDS_KD_REDUCE_ARRAY(t, T, n, op_) \
	&& kd_exact(&(op_)->kd_op) && kd_may_add(kd_type_##t.naccess, KD_ANCHOR_WRITE(n), 1)
#define KD_ADDS_KD_READ_LIST KD_ADDS_KD_VALUE
#define KD_ADDS_KD_WRITE_LIST KD_ADDS_KD_VALUE
#define KD_ADDS_KD_UPDATE_LIST KD_ADDS_KD_VALUE
/* all anchors */
#define KD_ALL(t, x) KD_SORT(KD_ALL_, t, KD_TUPLE_##x)
#define KD_ALL_KD_VALUE(t, T, n, op)
#define KD_ALL_KD_READ(t, T, n, op) KD_ANCHOR_READ(n),
#define KD_ALL_KD_WRITE(t, T, n, op) KD_ANCHOR_WRITE(n),
#define KD_ALL_KD_READ_LIST KD_ALL_KD_VALUE
#define KD_ALL_KD_WRITE_LIST KD_ALL_KD_VALUE
/* the arguments, and what is done to them around the call */
#define KD_LEND(t, x) KD_APPLY(KD_LEND_, t, KD_TUPLE_##x)
#define KD_LEND_KD_VALUE(t, T, n, op)
#define KD_LEND_KD_READ KD_LEND_KD_VALUE
#define KD_LEND_KD_WRITE KD_LEND_KD_VALUE
#define KD_LEND_KD_UPDATE KD_LEND_KD_VALUE
#define KD_LEND_KD_REDUCE(t, T, n, op) uint64_t kd_uses_##n = kd_lend(KD_ANCHOR_WRITE(n));
#define KD_LEND_KD_READ_ARRAY KD_LEND_KD_VALUE
#define KD_LEND_KD_WRITE_ARRAY KD_LEND_KD_VALUE
#define KD_LEND_KD_UPDATE_ARRAY KD_LEND_KD_VALUE
#define KD_LEND_KD_REDUCE_ARRAY KD_LEND_KD_REDUCE
#define KD_LEND_KD_READ_LIST KD_LEND_KD_VALUE
#define KD_LEND_KD_WRITE_LIST KD_LEND_KD_VALUE
#define KD_LEND_KD_UPDATE_LIST KD_LEND_KD_VALUE
#define KD_RETURN(t, x) KD_APPLY(KD_RETURN_, t, KD_TUPLE_##x)
#define KD_RETURN_KD_VALUE(t, T, n, op)
#define KD_RETURN_KD_READ KD_RETURN_KD_VALUE
#define KD_RETURN_KD_WRITE KD_RETURN_KD_VALUE
#define KD_RETURN_KD_UPDATE KD_RETURN_KD_VALUE
#define KD_RETURN_KD_REDUCE(t, T, n, op) kd_return(KD_ANCHOR_WRITE(n), kd_uses_##n);
#define KD_RETURN_KD_READ_ARRAY KD_RETURN_KD_VALUE
#define KD_RETURN_KD_WRITE_ARRAY KD_RETURN_KD_VALUE
#define KD_RETURN_KD_UPDATE_ARRAY KD_RETURN_KD_VALUE
#define KD_RETURN_KD_REDUCE_ARRAY KD_RETURN_KD_REDUCE
#define KD_RETURN_KD_READ_LIST KD_RETURN_KD_VALUE
#define KD_RETURN_KD_WRITE_LIST KD_RETURN_KD_VALUE
#define KD_RETURN_KD_UPDATE_LIST KD_RETURN_KD_VALUE
#define KD_HAND(t, x) KD_SORT(KD_HAND_, t, KD_TUPLE_##x)
#define KD_HAND_KD_VALUE(t, T, n, op) , KD_VALUE_HAND(T, n)
#define KD_HAND_KD_READ(t, T, n, op) , *KD_REF_READ(n), KD_ANCHOR_READ(n)
#define KD_HAND_KD_WRITE(t, T, n, op) , *KD_REF_WRITE(n), KD_ANCHOR_WRITE(n)
#define KD_HAND_KD_READ_LIST(t, T, n, op) , KD_NO_LIST(kd_list_##t##_##n)
#define KD_HAND_KD_WRITE_LIST KD_HAND_KD_READ_LIST
/* What the ABI would pass in memory is passed by address, which saves a copy (UTS 0.8 %). */
#define KD_IN_MEMORY(T) (sizeof(T) > 16)
#ifdef __cplusplus
#define KD_VALUE_TAKE(T, n) typename std::conditional<KD_IN_MEMORY(T), T &, T>::type n
#define KD_VALUE_HAND(T, n) n
#define KD_VALUE_GIVE(T, n) n
#else
#define KD_VALUE_TAKE(T, n) __typeof__(*__builtin_choose_expr(KD_IN_MEMORY(T), (T **)0, (T *)0)) n
#define KD_VALUE_HAND(T, n) __builtin_choose_expr(KD_IN_MEMORY(T), &(n), n)
#define KD_VALUE_GIVE(T, n) *__builtin_choose_expr(KD_IN_MEMORY(T), n, &(n))
#endif
/* What the body is given of a reference: where the data are, and the anchor. */
#define KD_TAKE(t, x) KD_SORT(KD_TAKE_, t, KD_TUPLE_##x)
#define KD_TAKE_KD_VALUE(t, T, n, op) , KD_VALUE_TAKE(T, n)
#define KD_TAKE_KD_READ(t, T, n, op) , T const *kd_at_##n, struct kdds_anchor *kd_ref_##n
#define KD_TAKE_KD_WRITE(t, T, n, op) , T *kd_at_##n, struct kdds_anchor *kd_ref_##n
#define KD_TAKE_KD_READ_LIST KD_PARAM_KD_READ_LIST
#define KD_TAKE_KD_WRITE_LIST KD_PARAM_KD_READ_LIST
#define KD_SEE(t, x) KD_SORT(KD_SEE_, t, KD_TUPLE_##x)
#define KD_SEE_KD_VALUE(t, T, n, op)
#define KD_SEE_KD_READ(t, T, n, op) kd_handle(T const) n = {kd_at_##n, KD_HANDLE, kd_ref_##n};
#define KD_SEE_KD_WRITE(t, T, n, op) kd_handle(T) n = {kd_at_##n, KD_HANDLE, kd_ref_##n};
#define KD_SEE_KD_READ_LIST KD_SEE_KD_VALUE
#define KD_SEE_KD_WRITE_LIST KD_SEE_KD_VALUE
#define KD_SEEN(t, x) KD_SORT(KD_SEEN_, t, KD_TUPLE_##x)
#define KD_SEEN_KD_VALUE(t, T, n, op)
#define KD_SEEN_KD_READ(t, T, n, op) (struct kd_handle *)(void *)&n,
#define KD_SEEN_KD_WRITE KD_SEEN_KD_READ
#define KD_SEEN_KD_READ_LIST KD_SEEN_KD_VALUE
#define KD_SEEN_KD_WRITE_LIST KD_SEEN_KD_VALUE
#define KD_GIVE(t, x) KD_SORT(KD_GIVE_, t, KD_TUPLE_##x)
#define KD_GIVE_KD_VALUE(t, T, n, op) , KD_VALUE_GIVE(T, n)
#define KD_GIVE_KD_READ(t, T, n, op) , &n.at
#define KD_GIVE_KD_WRITE KD_GIVE_KD_READ
#define KD_GIVE_KD_READ_LIST(t, T, n, op) , n
#define KD_GIVE_KD_WRITE_LIST KD_GIVE_KD_READ_LIST
/* Anchors in place of references: a function that is not inlined gets no address of a handle. */
#define KD_NEAR(t, x) KD_SORT(KD_NEAR_, t, KD_TUPLE_##x)
#define KD_NEAR_KD_VALUE KD_ARG_KD_VALUE
#define KD_NEAR_KD_READ(t, T, n, op) , struct kdds_anchor *n
#define KD_NEAR_KD_WRITE KD_NEAR_KD_READ
#define KD_NEAR_KD_READ_LIST(t, T, n, op)
#define KD_NEAR_KD_WRITE_LIST KD_NEAR_KD_READ_LIST
#define KD_FIND(t, x) KD_SORT(KD_FIND_, t, KD_TUPLE_##x)
#define KD_FIND_KD_VALUE(t, T, n, op) , n
#define KD_FIND_KD_READ(t, T, n, op) , KD_ANCHOR_READ(n)
#define KD_FIND_KD_WRITE(t, T, n, op) , KD_ANCHOR_WRITE(n)
#define KD_FIND_KD_READ_LIST(t, T, n, op)
#define KD_FIND_KD_WRITE_LIST KD_FIND_KD_READ_LIST
#define KD_AMONG(t, x) KD_SORT(KD_AMONG_, t, KD_TUPLE_##x)
#define KD_AMONG_KD_VALUE(t, T, n, op)
#define KD_AMONG_KD_READ(t, T, n, op) n,
#define KD_AMONG_KD_WRITE KD_AMONG_KD_READ
#define KD_AMONG_KD_READ_LIST KD_AMONG_KD_VALUE
#define KD_AMONG_KD_WRITE_LIST KD_AMONG_KD_VALUE
/* whether the library has to examine the push that comes, and of which arguments */
#define KD_DOUBT(t, x) KD_APPLY(KD_DOUBT_, t, KD_TUPLE_##x)
#define KD_DOUBT_KD_VALUE(t, T, n, op)
#define KD_DOUBT_AS_(n, mode, array) const uint64_t kd_doubt_##n = kd_doubt(n, mode, array);
#define KD_DOUBT_KD_READ(t, T, n, op) KD_DOUBT_AS_(n, KDDS_R, 0)
#define KD_DOUBT_KD_WRITE(t, T, n, op) KD_DOUBT_AS_(n, KDDS_W, 0)
#define KD_DOUBT_KD_UPDATE(t, T, n, op) KD_DOUBT_AS_(n, KDDS_RW, 0)
#define KD_DOUBT_KD_REDUCE(t, T, n, op) KD_DOUBT_AS_(n, KDDS_CW, 0)
#define KD_DOUBT_KD_READ_ARRAY(t, T, n, op) KD_DOUBT_AS_(n, KDDS_R, 1)
#define KD_DOUBT_KD_WRITE_ARRAY(t, T, n, op) KD_DOUBT_AS_(n, KDDS_W, 1)
#define KD_DOUBT_KD_UPDATE_ARRAY(t, T, n, op) KD_DOUBT_AS_(n, KDDS_RW, 1)
#define KD_DOUBT_KD_REDUCE_ARRAY(t, T, n, op) KD_DOUBT_AS_(n, KDDS_CW, 1)
#define KD_DOUBT_KD_READ_LIST KD_DOUBT_KD_VALUE
#define KD_DOUBT_KD_WRITE_LIST KD_DOUBT_KD_VALUE
#define KD_DOUBT_KD_UPDATE_LIST KD_DOUBT_KD_VALUE
#define KD_DOUBTS(t, x) KD_SORT(KD_DOUBTS_, t, KD_TUPLE_##x)
#define KD_DOUBTS_KD_VALUE(t, T, n, op)
#define KD_DOUBTS_KD_READ(t, T, n, op) | kd_doubt_##n
#define KD_DOUBTS_KD_WRITE KD_DOUBTS_KD_READ
#define KD_DOUBTS_KD_READ_LIST KD_DOUBTS_KD_VALUE
#define KD_DOUBTS_KD_WRITE_LIST KD_DOUBTS_KD_VALUE
#define KD_PLACES(t, x) KD_SORT(KD_PLACES_, t, KD_TUPLE_##x)
#define KD_PLACES_KD_VALUE(t, T, n, op)
#define KD_PLACES_KD_READ(t, T, n, op) kd_doubt_##n ? (char *)n - (char *)kd_f : 0,
#define KD_PLACES_KD_WRITE KD_PLACES_KD_READ
#define KD_PLACES_KD_READ_LIST KD_PLACES_KD_VALUE
#define KD_PLACES_KD_WRITE_LIST KD_PLACES_KD_VALUE
#define KD_EXAMINE(t, type, ...) \
	KD_MAP(KD_DOUBT, t, ##__VA_ARGS__) \
	if (KD_UNLIKELY(0 KD_MAP(KD_DOUBTS, t, ##__VA_ARGS__))) { \
		const ptrdiff_t kd_places[] = {KD_MAP(KD_PLACES, t, ##__VA_ARGS__) 0}; \
		kd_examine(kd_f, &type, kd_places); \
	}
#define KD_BACK(t, x) KD_SORT(KD_BACK_, t, KD_TUPLE_##x)
#define KD_BACK_KD_VALUE KD_GIVE_KD_VALUE
#define KD_BACK_KD_READ(t, T, n, op) , kd_ref_##n
#define KD_BACK_KD_WRITE KD_BACK_KD_READ
#define KD_BACK_KD_READ_LIST(t, T, n, op)
#define KD_BACK_KD_WRITE_LIST KD_BACK_KD_READ_LIST
/* the same parameters, passed on */
#define KD_NAME(t, x) KD_SORT(KD_NAME_, t, KD_TUPLE_##x)
#define KD_NAME_KD_VALUE(t, T, n, op) , n
#define KD_NAME_KD_READ KD_NAME_KD_VALUE
#define KD_NAME_KD_WRITE KD_NAME_KD_VALUE
#define KD_NAME_KD_READ_LIST(t, T, n, op)
#define KD_NAME_KD_WRITE_LIST KD_NAME_KD_READ_LIST

/* filling the closure */
#define KD_FILL(t, x) KD_APPLY(KD_FILL_, t, KD_TUPLE_##x)
#define KD_FILL_KD_VALUE(t, T, n, op) kd_c->n = n;
#define KD_FILL_KD_READ(t, T, n, op) kd_link(&kd_c->n, n, kd_s, KDDS_R);
#define KD_FILL_(t, n, mode) kd_link(&kd_c->n, n, kd_s, mode);
#define KD_FILL_KD_WRITE(t, T, n, op) KD_FILL_(t, n, KDDS_W)
#define KD_FILL_KD_UPDATE(t, T, n, op) KD_FILL_(t, n, KDDS_RW)
#define KD_FILL_KD_REDUCE(t, T, n, op) kd_link(&kd_c->n.r.a, n, kd_s, KDDS_CW);
#define KD_FILL_KD_READ_ARRAY(t, T, n, op) kd_link_array(&kd_c->n, n, kd_s, KDDS_R);
#define KD_FILL_ARRAY_(t, n, mode) kd_link_array(&kd_c->n, n, kd_s, mode);
#define KD_FILL_KD_WRITE_ARRAY(t, T, n, op) KD_FILL_ARRAY_(t, n, KDDS_W)
#define KD_FILL_KD_UPDATE_ARRAY(t, T, n, op) KD_FILL_ARRAY_(t, n, KDDS_RW)
#define KD_FILL_KD_REDUCE_ARRAY(t, T, n, op) KD_FILL_ARRAY_(t, n, KDDS_CW)
#define KD_FILL_KD_READ_LIST(t, T, n, op)
#define KD_FILL_KD_WRITE_LIST KD_FILL_KD_READ_LIST
#define KD_FILL_KD_UPDATE_LIST KD_FILL_KD_READ_LIST
/* The values only: the library has filled the rest. */
#define KD_COPY(t, x) KD_SORT(KD_COPY_, t, KD_TUPLE_##x)
#define KD_COPY_KD_VALUE KD_FILL_KD_VALUE
#define KD_COPY_KD_READ KD_FILL_KD_READ_LIST
#define KD_COPY_KD_WRITE KD_FILL_KD_READ_LIST
#define KD_COPY_KD_READ_LIST KD_FILL_KD_READ_LIST
#define KD_COPY_KD_WRITE_LIST KD_FILL_KD_READ_LIST
/* what it fills in: the references of each shared parameter */
#define KD_GATHER(t, x) KD_SORT(KD_GATHER_, t, KD_TUPLE_##x)
#define KD_GATHER_KD_VALUE(t, T, n, op)
#define KD_GATHER_KD_READ(t, T, n, op) const void *const kd_one_##n = KD_REF_READ(n);
#define KD_GATHER_KD_WRITE(t, T, n, op) const void *const kd_one_##n = KD_REF_WRITE(n);
#define KD_GATHER_KD_READ_LIST KD_GATHER_KD_VALUE
#define KD_GATHER_KD_WRITE_LIST KD_GATHER_KD_VALUE
#define KD_GIVEN(t, x) KD_SORT(KD_GIVEN_, t, KD_TUPLE_##x)
#define KD_GIVEN_KD_VALUE(t, T, n, op)
#define KD_GIVEN_KD_READ(t, T, n, op) {&kd_one_##n, 1},
#define KD_GIVEN_KD_WRITE KD_GIVEN_KD_READ
#define KD_GIVEN_KD_READ_LIST(t, T, n, op) {(const void *const *)(const void *)KD_REF_READ(n), kd_n_##n},
#define KD_GIVEN_KD_WRITE_LIST(t, T, n, op) {(const void *const *)(const void *)KD_REF_WRITE(n), kd_n_##n},
#define KD_TELL(t, x) KD_SORT(KD_TELL_, t, KD_TUPLE_##x)
#define KD_TELL_KD_VALUE(t, T, n, op) , n
#define KD_TELL_KD_READ KD_TELL_KD_VALUE
#define KD_TELL_KD_WRITE KD_TELL_KD_VALUE
#define KD_TELL_KD_READ_LIST(t, T, n, op) , n, kd_n_##n
#define KD_TELL_KD_WRITE_LIST KD_TELL_KD_READ_LIST

/* the body: its parameters, their anchors, and the call */
#define KD_PARAM(t, x) KD_SORT(KD_PARAM_, t, KD_TUPLE_##x)
#define KD_PARAM_KD_VALUE(t, T, n, op) , T n
#define KD_PARAM_KD_READ(t, T, n, op) , T const *const *n
#define KD_PARAM_KD_WRITE(t, T, n, op) , T *const *n
#define KD_PARAM_KD_READ_LIST(t, T, n, op) , kd_list_##t##_##n n
#define KD_PARAM_KD_WRITE_LIST KD_PARAM_KD_READ_LIST
#define KD_OPEN(t, x) KD_APPLY(KD_OPEN_, t, KD_TUPLE_##x)
#define KD_OPEN_KD_VALUE(t, T, n, op)
#define KD_OPEN_(T, n, mode) \
	kdds_data(T) n = {(T *)kd_c->n.data, KD_USABLE(mode), KD_USE(mode), 0, NULL, \
			  (mode) == KDDS_R ? KD_NO_LINK : 0};
#define KD_OPEN_KD_READ(t, T, n, op) KD_OPEN_(T const, n, KDDS_R)
#define KD_OPEN_KD_WRITE(t, T, n, op) KD_OPEN_(T, n, KDDS_W)
#define KD_OPEN_KD_UPDATE(t, T, n, op) KD_OPEN_(T, n, KDDS_RW)
#define KD_OPEN_KD_REDUCE(t, T, n, op) \
	kdds_data(T) n = {(T *)kd_c->n.r.a.data, KD_USABLE(KDDS_CW), KD_USE(KDDS_CW), 0, NULL, KD_NO_LINK};
#define KD_OPEN_ARRAY_(T, n, mode) \
	kdds_array(T) n = {(T *)kd_c->n.a.data, kd_single(&kd_c->n.shape, mode), KD_USE(mode), \
			   1, NULL, KD_NO_LINK, kd_c->n.shape};
#define KD_OPEN_KD_READ_ARRAY(t, T, n, op) KD_OPEN_ARRAY_(T const, n, KDDS_R)
#define KD_OPEN_KD_WRITE_ARRAY(t, T, n, op) KD_OPEN_ARRAY_(T, n, KDDS_W)
#define KD_OPEN_KD_UPDATE_ARRAY(t, T, n, op) KD_OPEN_ARRAY_(T, n, KDDS_RW)
#define KD_OPEN_KD_REDUCE_ARRAY(t, T, n, op) KD_OPEN_ARRAY_(T, n, KDDS_CW)
#define KD_OPEN_LIST_(t, T, n, mode) \
	kd_list_##t##_##n n __attribute__((cleanup(kdds_list_close))) = { \
		(T *const *const *)kdds_list_open(kd_h, offsetof(struct kd_closure_##t, n), mode), kd_c->n.count};
#define KD_OPEN_KD_READ_LIST(t, T, n, op) KD_OPEN_LIST_(t, T const, n, KDDS_R)
#define KD_OPEN_KD_WRITE_LIST(t, T, n, op) KD_OPEN_LIST_(t, T, n, KDDS_W)
#define KD_OPEN_KD_UPDATE_LIST(t, T, n, op) KD_OPEN_LIST_(t, T, n, KDDS_RW)
#define KD_PASS(t, x) KD_SORT(KD_PASS_, t, KD_TUPLE_##x)
#define KD_PASS_KD_VALUE(t, T, n, op) , KD_VALUE_HAND(T, kd_c->n)
#define KD_PASS_KD_READ(t, T, n, op) , n.at, (struct kdds_anchor *)(void *)&n
#define KD_PASS_KD_WRITE KD_PASS_KD_READ
#define KD_PASS_KD_READ_LIST(t, T, n, op) , n
#define KD_PASS_KD_WRITE_LIST KD_PASS_KD_READ_LIST

/* what kdds_for cuts */
#define KD_CUT(t, x) KD_CUT_(t, KD_CUT_##x)
#define KD_CUT_(...) KD_CUT_IT(__VA_ARGS__)
#define KD_CUT_IT(t, cut, T, n) cut(t, T, n)
#define KD_CUT_NOT(t, T, n)
#define KD_CUT_ARRAY(t, T, n) {offsetof(struct kd_closure_##t, n), sizeof(T), #n},
#define KD_CUT_INDICES(t, T, n) {offsetof(struct kd_closure_##t, n), 0, #n},
#define KD_CUT_VALUE(T, n) KD_CUT_NOT, T, n
#define KD_CUT_READ KD_CUT_VALUE
#define KD_CUT_WRITE KD_CUT_VALUE
#define KD_CUT_UPDATE KD_CUT_VALUE
#define KD_CUT_REDUCE(T, n, op) KD_CUT_NOT, T, n
#define KD_CUT_READ_ARRAY KD_CUT_VALUE
#define KD_CUT_WRITE_ARRAY KD_CUT_VALUE
#define KD_CUT_UPDATE_ARRAY KD_CUT_VALUE
#define KD_CUT_REDUCE_ARRAY KD_CUT_REDUCE
#define KD_CUT_READ_LIST KD_CUT_VALUE
#define KD_CUT_WRITE_LIST KD_CUT_VALUE
#define KD_CUT_UPDATE_LIST KD_CUT_VALUE
#define KD_CUT_READ_EACH(T, n) KD_CUT_ARRAY, T, n
#define KD_CUT_WRITE_EACH KD_CUT_READ_EACH
#define KD_CUT_UPDATE_EACH KD_CUT_READ_EACH
#define KD_CUT_RANGE(n) KD_CUT_INDICES, , n
#define KD_CUT_KDDS_VALUE KD_CUT_VALUE
#define KD_CUT_KDDS_READ KD_CUT_READ
#define KD_CUT_KDDS_WRITE KD_CUT_WRITE
#define KD_CUT_KDDS_UPDATE KD_CUT_UPDATE
#define KD_CUT_KDDS_REDUCE KD_CUT_REDUCE
#define KD_CUT_KDDS_READ_ARRAY KD_CUT_READ_ARRAY
#define KD_CUT_KDDS_WRITE_ARRAY KD_CUT_WRITE_ARRAY
#define KD_CUT_KDDS_UPDATE_ARRAY KD_CUT_UPDATE_ARRAY
#define KD_CUT_KDDS_REDUCE_ARRAY KD_CUT_REDUCE_ARRAY
#define KD_CUT_KDDS_READ_LIST KD_CUT_READ_LIST
#define KD_CUT_KDDS_WRITE_LIST KD_CUT_WRITE_LIST
#define KD_CUT_KDDS_UPDATE_LIST KD_CUT_UPDATE_LIST
#define KD_CUT_KDDS_RANGE KD_CUT_RANGE
#define KD_CUT_KDDS_READ_EACH KD_CUT_READ_EACH
#define KD_CUT_KDDS_WRITE_EACH KD_CUT_WRITE_EACH
#define KD_CUT_KDDS_UPDATE_EACH KD_CUT_UPDATE_EACH
/** @endcond */

/** @cond internal */
#define KD_ANCHOR_FIELDS(T) \
	T *at; int32_t kd_single; int16_t kd_use; uint16_t kd_shaped; void *kd_self; \
	uint64_t kd_links;
#define KD_ARRAY_FIELDS(T) KD_ANCHOR_FIELDS(T) struct kdds_shape kd_shape;
#define KD_PART_FIELDS(T) KD_ARRAY_FIELDS(T) struct kdds_anchor *kd_whole; size_t kd_size;
#define KD_HANDLE_FIELDS(T) \
	T *at; uint64_t kd_kind; struct kdds_anchor *kd_anchor;
#ifdef __cplusplus
template <typename T> struct kd_datatype { KD_ANCHOR_FIELDS(T) };
template <typename T> struct kd_array_type { KD_ARRAY_FIELDS(T) };
template <typename T> struct kd_part_type { KD_PART_FIELDS(T) };
template <typename T> struct kd_handletype { KD_HANDLE_FIELDS(T) };
#define kdds_data(T) kd_datatype<T>
#define kdds_array(T) kd_array_type<T>
#define kdds_part(T) kd_part_type<T>
#define kd_handle(T) kd_handletype<T>
#else
#define kd_handle(T) struct { KD_HANDLE_FIELDS(T) }
#endif
#define kd_make_handle(handle, anchor) \
	((handle).at = (anchor).at, (handle).kd_kind = KD_HANDLE, \
	 (handle).kd_anchor = (struct kdds_anchor *)(void *)&(anchor), &(handle).at)
/** @endcond */

#ifndef __cplusplus
/** The type of an anchor whose data is a T: an object that a body declares, alone or in arrays, for
 *  data that it provides itself. Its first member, @c at, points to the data. kdds_ref(x) is
 *  the reference that kdds_spawn takes. See kdds_bind. In C each use is another type, as is that of
 *  the two macros below. */
#define kdds_data(T) struct { KD_ANCHOR_FIELDS(T) }

/** The same for data with a shape: see kdds_bind_array. */
#define kdds_array(T) struct { KD_ARRAY_FIELDS(T) }

/** The same for a part of other data: see kdds_bind_slice. */
#define kdds_part(T) struct { KD_PART_FIELDS(T) }
#endif

/** The argument for a _LIST parameter: @p refs is an array of @p n references, which is read during
 *  the spawn only. n is 0 or more; the lists of a task have room for about 1300 references. */
#define kdds_list(refs, n) (refs), (n)

/** Declares a task, for mutual recursion: other tasks of the file can spawn it before
 *  KDDS_TASK_BODY defines its body. Both macros take the same list of parameters. */
#define KDDS_TASK_DECLARE(t, ...) \
	KD_MAP(KD_MODE, t, ##__VA_ARGS__) \
	static char kd_parts_##t __attribute__((unused)); \
	static void kd_run_##t(struct kdds_closure *, struct kdds_frame *); \
	KD_MAP(KD_TYPE, t, ##__VA_ARGS__) \
	static inline void kd_call_##t(struct kdds_frame *, int, char * KD_MAP(KD_TAKE, t, ##__VA_ARGS__)); \
	KD_TASK(t, ##__VA_ARGS__)

/** Declares a task that several files spawn, in a header. One file defines it with
 *  KDDS_TASK_DEFINE. In a header for C and C++ it stands within extern "C". */
#define KDDS_TASK_EXTERN(t, ...) \
	KD_MAP(KD_MODE, t, ##__VA_ARGS__) \
	extern char kd_parts_##t; \
	void kd_run_##t(struct kdds_closure *, struct kdds_frame *); \
	KD_MAP(KD_TYPE, t, ##__VA_ARGS__) \
	void kd_call_##t(struct kdds_frame *, int, char * KD_MAP(KD_TAKE, t, ##__VA_ARGS__)); \
	KD_TASK(t, ##__VA_ARGS__)

/** @cond internal */
/*
 * What a body does before the program's text: kd_enter, for its VALUEs. In C the length of an array
 * in the type of a parameter is evaluated as the function begins; there is no other place for it,
 * and in C++ none at all. -Wvla would warn of it in programs.
 */
#ifdef KD_SCALARS
#pragma GCC diagnostic ignored "-Wvla"
#define KD_ENTRY(length) , char (*kd_entry)[length] __attribute__((unused))
#define KD_ENTRY_GIVE , NULL
#else
#define KD_ENTRY(length)
#define KD_ENTRY_GIVE
#endif
#define KD_ENTER(t, x) KD_SORT(KD_ENTER_, t, KD_TUPLE_##x)
#define KD_ENTER_KD_VALUE(t, T, n, op) \
	* kd_enter(kd_room, (void *)&n, KD_IS_SCALAR(n) ? sizeof(n) : 0)
#define KD_ENTER_KD_READ(t, T, n, op)
#define KD_ENTER_KD_WRITE(t, T, n, op)
#define KD_ENTER_KD_READ_LIST(t, T, n, op)
#define KD_ENTER_KD_WRITE_LIST(t, T, n, op)
/* an integer or a pointer */
#define KD_IS_SCALAR(n) \
	((sizeof(n) == 4 || sizeof(n) == 8) && \
	 (__builtin_classify_type(n) == 1 || __builtin_classify_type(n) == 5))

/* What all files have of a task: its closures, and how it is spawned. kd_parts_##t: its body binds
 * memory; from then on it is pushed, so its children are ordered by its links. Compilers know that a
 * static one is 0 if no body sets it. */
#define KD_TASK(t, ...) \
	struct kd_closure_##t { struct kdds_closure kd_head; KD_MAP(KD_FIELD, t, ##__VA_ARGS__) } __attribute__((aligned(16))); \
	KD_MAP(KD_CHECK, t, ##__VA_ARGS__) \
	KD_ASSERT(sizeof(struct kd_closure_##t) <= KD_CLOSURE_MAX, \
		  "task " #t ": a closure has no room for VALUEs of 64 KiB or more: share some") \
	static const struct kdds_param kd_access_##t[] = {KD_MAP(KD_ROW, t, ##__VA_ARGS__) {0, 0, 0, 0, 0, 0, NULL, NULL}}; \
	static const struct kdds_type kd_type_##t = { \
		kd_run_##t, sizeof(struct kd_closure_##t) < 32 ? 32 : sizeof(struct kd_closure_##t), \
		0 KD_MAP(KD_ONE, t, ##__VA_ARGS__), \
		0 KD_MAP(KD_CWS, t, ##__VA_ARGS__), kd_access_##t, #t, KD_TYPE_MAGIC, 0 KD_MAP(KD_POINTS, t, ##__VA_ARGS__), \
		0 KD_MAP(KD_LISTED, t, ##__VA_ARGS__), NULL}; \
	__attribute__((unused, always_inline)) static inline void kd_push_##t( \
		struct kdds_frame *kd_f, int kd_keep, uint32_t kd_attr KD_MAP(KD_NEAR, t, ##__VA_ARGS__)) \
	{ \
		KD_EXAMINE(t, kd_type_##t, ##__VA_ARGS__) \
		char *kd_a = kd_push(kd_f, kd_type_##t.size, kd_keep); \
		uint32_t kd_s __attribute__((unused)) = kd_link_of(kd_f, kd_a); \
		struct kd_closure_##t *kd_c = (struct kd_closure_##t *)kd_a; \
		kd_init_closure(&kd_c->kd_head, &kd_type_##t, kd_type_##t.size, kd_attr, 0 KD_MAP(KD_BORN, t, ##__VA_ARGS__)); \
		KD_MAP(KD_FILL, t, ##__VA_ARGS__) \
		kd_commit(kd_f, kd_a, kd_type_##t.size); \
	} \
	__attribute__((unused, noinline)) static void kd_defer_##t( \
		struct kdds_frame *kd_f, char *kd_top, uint32_t kd_attr KD_MAP(KD_NEAR, t, ##__VA_ARGS__)) \
	{ \
		struct kdds_anchor *const kd_all[] = {KD_MAP(KD_AMONG, t, ##__VA_ARGS__) NULL}; \
		kd_order(kd_f, kd_all, kd_type_##t.naccess); \
		kd_push_##t(kd_f, 1, kd_attr KD_MAP(KD_NAME, t, ##__VA_ARGS__)); \
		if (kd_f->keep < kd_top) \
			kd_f->keep = kd_top; \
	} \
	__attribute__((unused, noinline)) static void kd_pushlists_##t( \
		struct kdds_frame *kd_f, char *kd_top, const struct kdds_type *kd_type, \
		const struct kdds_loop *kd_loop, uint32_t kd_attr KD_MAP(KD_ARG, t, ##__VA_ARGS__)) \
	{ \
		KD_MAP(KD_GATHER, t, ##__VA_ARGS__) \
		const struct kdds_given kd_given[] = {KD_MAP(KD_GIVEN, t, ##__VA_ARGS__) {NULL, 0}}; \
		struct kd_closure_##t *kd_c = (struct kd_closure_##t *)(void *) \
			kdds_list_push(kd_f, kd_type, kd_attr, 0 KD_MAP(KD_BORN, t, ##__VA_ARGS__), kd_given); \
		KD_MAP(KD_COPY, t, ##__VA_ARGS__) \
		if (kd_loop) \
			kdds_loop_begin(&kd_c->kd_head, kd_loop); \
		if (kd_f->keep < kd_top) \
			kd_f->keep = kd_top; \
		kd_commit(kd_f, (char *)kd_c, kd_c->kd_head.bytes); \
	} \
	__attribute__((unused, always_inline)) static inline void kd_spawn_##t( \
		struct kdds_frame *kd_f, struct kd_room *kd_r, uint32_t kd_attr KD_MAP(KD_ARG, t, ##__VA_ARGS__)) \
	{ \
		if (0 KD_MAP(KD_LISTED, t, ##__VA_ARGS__)) { \
			kd_pushlists_##t(kd_frame_of(kd_f), kd_r ? kd_r->top : NULL, &kd_type_##t, NULL, \
					  kd_attr KD_MAP(KD_TELL, t, ##__VA_ARGS__)); \
			kd_place(kd_attr); \
			return; \
		} \
		KD_MAP(KD_VALID, t, ##__VA_ARGS__) \
		if (!kd_r) { \
			kd_f = kd_frame_of(kd_f); \
			kd_push_##t(kd_f, 0, kd_attr KD_MAP(KD_FIND, t, ##__VA_ARGS__)); \
			kd_place(kd_attr); \
			return; \
		} \
		struct kdds_anchor *const kd_all[] __attribute__((unused)) = {KD_MAP(KD_ALL, t, ##__VA_ARGS__) NULL}; \
		uint64_t kd_links; \
		kd_renew(kd_r); \
		if (!kd_attr && !KD_FLAG(kd_parts_##t) && \
		    (__builtin_expect(!(kd_links = 0 KD_MAP(KD_LINKS, t, ##__VA_ARGS__)), 1) || \
		     kd_fresh(kd_f, 0 KD_MAP(KD_ONE, t, ##__VA_ARGS__), kd_links, 0u KD_MAP(KD_READS, t, ##__VA_ARGS__), 0u KD_MAP(KD_WRITES, t, ##__VA_ARGS__))) \
			   KD_MAP(KD_ADDS, t, ##__VA_ARGS__) && \
		    (!kd_type_##t.reduces || kd_distinct(kd_all, kd_type_##t.naccess)) && \
		    __builtin_expect(kd_callable(kd_f, kd_r) || kd_counted(kd_f), 1)) { \
			kd_f->used = KD_CALLED; \
			KD_MAP(KD_LEND, t, ##__VA_ARGS__) \
			kd_call_##t(kd_f, 0, kd_r->top KD_MAP(KD_HAND, t, ##__VA_ARGS__)); \
			KD_MAP(KD_RETURN, t, ##__VA_ARGS__) \
		} else { \
			kd_defer_##t(kd_f, kd_r->top, kd_attr KD_MAP(KD_FIND, t, ##__VA_ARGS__)); \
			kd_place(kd_attr); \
		} \
	} \
	struct kd_loopclosure_##t { struct kd_closure_##t kd_c; struct kdds_loop_part kd_part; } __attribute__((aligned(16))); \
	static const struct kdds_cut kd_cuts_##t[] __attribute__((unused)) = {KD_MAP(KD_CUT, t, ##__VA_ARGS__) {0, 0, NULL}}; \
	KD_ASSERT(sizeof(kd_cuts_##t) == sizeof(struct kdds_cut) || \
		  sizeof(struct kd_loopclosure_##t) <= KD_CLOSURE_MAX, \
		  "task " #t ": a closure has no room for VALUEs of 64 KiB or more: share some") \
	static const struct kdds_loop kd_loop_##t __attribute__((unused)) = {&kd_type_##t, kd_cuts_##t, sizeof(struct kd_closure_##t)}; \
	__attribute__((unused)) static void kd_runloop_##t(struct kdds_closure *kd_h, struct kdds_frame *kd_f) \
	{ \
		kdds_loop_run(kd_h, kd_f, &kd_loop_##t); \
	} \
	static const struct kdds_type kd_looptype_##t __attribute__((unused)) = { \
		kd_runloop_##t, sizeof(struct kd_loopclosure_##t), \
		0 KD_MAP(KD_ONE, t, ##__VA_ARGS__), \
		0 KD_MAP(KD_CWS, t, ##__VA_ARGS__), kd_access_##t, #t, KD_TYPE_MAGIC, 0 KD_MAP(KD_POINTS, t, ##__VA_ARGS__), \
		0 KD_MAP(KD_LISTED, t, ##__VA_ARGS__), &kd_loop_##t}; \
	__attribute__((unused)) static void kd_commitloop_##t( \
		struct kdds_frame *kd_f KD_MAP(KD_NEAR, t, ##__VA_ARGS__)) \
	{ \
		struct kdds_anchor *const kd_all[] = {KD_MAP(KD_AMONG, t, ##__VA_ARGS__) NULL}; \
		KD_EXAMINE(t, kd_looptype_##t, ##__VA_ARGS__) \
		char *kd_a = kd_push(kd_f, kd_looptype_##t.size, 0); \
		uint32_t kd_s __attribute__((unused)) = kd_link_of(kd_f, kd_a); \
		struct kd_closure_##t *kd_c = (struct kd_closure_##t *)kd_a; \
		kd_init_closure(&kd_c->kd_head, &kd_looptype_##t, kd_looptype_##t.size, 0, 0 KD_MAP(KD_BORN, t, ##__VA_ARGS__)); \
		kd_order(kd_f, kd_all, kd_type_##t.naccess); \
		kd_f->keep = kd_f->arena; \
		KD_MAP(KD_FILL, t, ##__VA_ARGS__) \
		kdds_loop_begin(&kd_c->kd_head, &kd_loop_##t); \
		kd_commit(kd_f, kd_a, kd_looptype_##t.size); \
	} \
	__attribute__((unused, always_inline)) static inline void kd_for_##t( \
		struct kdds_frame *kd_f KD_MAP(KD_ARG, t, ##__VA_ARGS__)) \
	{ \
		if (0 KD_MAP(KD_LISTED, t, ##__VA_ARGS__)) { \
			kd_pushlists_##t(kd_f, kd_f->arena, &kd_looptype_##t, &kd_loop_##t, \
					  0 KD_MAP(KD_TELL, t, ##__VA_ARGS__)); \
			return; \
		} \
		KD_MAP(KD_VALID, t, ##__VA_ARGS__) \
		kd_commitloop_##t(kd_f KD_MAP(KD_FIND, t, ##__VA_ARGS__)); \
	}

#define KD_BODY(t, for_run, for_call, ...) \
	KD_INLINE_BODY void kd_body_##t(struct kdds_frame *kd_self, struct kd_room *kd_room \
					KD_MAP(KD_PARAM, t, ##__VA_ARGS__) KD_ENTRY(*)) \
		__attribute__((nonnull(1, 2))); \
	for_call void kd_call_##t(struct kdds_frame *kd_f, int kd_closure, char *kd_top KD_MAP(KD_TAKE, t, ##__VA_ARGS__)) \
	{ \
		struct kd_room kd_r = {kd_top, NULL, 0, kd_closure && kd_type_##t.naccess + kd_type_##t.lists > 1, !kd_closure, 0, 0, \
				       kd_closure ? 0 : kd_link_next(kd_f), &kd_type_##t, 0, \
				       {NULL}, {{NULL, 0}}}; \
		KD_MAP(KD_SEE, t, ##__VA_ARGS__) \
		struct kd_handle *const kd_seen[] = {KD_MAP(KD_SEEN, t, ##__VA_ARGS__) NULL, NULL, NULL, NULL}; \
		kd_r.handles[0] = kd_seen[0]; \
		kd_r.handles[1] = kd_seen[1]; \
		kd_r.handles[2] = kd_seen[2]; \
		kd_r.handles[3] = kd_seen[3]; \
		KD_TRY \
			kd_body_##t(kd_f, &kd_r KD_MAP(KD_GIVE, t, ##__VA_ARGS__) KD_ENTRY_GIVE); \
		KD_CATCH_IN(kd_r) \
		if (kd_r.parts) \
			KD_SET_FLAG(kd_parts_##t); \
		if (KD_UNLIKELY(kd_r.failed)) { \
			if (kd_closure) \
				kdds_fail_running(); \
			else /* later closures find by their links that it has failed */ \
				kd_defer_##t(kd_f, kd_r.top, (KD_OVER | KD_UNMARKED) << 16 KD_MAP(KD_BACK, t, ##__VA_ARGS__)); \
		} \
	} \
	for_run void kd_run_##t(struct kdds_closure *kd_h, struct kdds_frame *kd_f) \
	{ \
		struct kd_closure_##t *kd_c __attribute__((unused)) = (struct kd_closure_##t *)kd_h; \
		/* In C++ other parameters than those declared would make it another function. */ \
		(void)sizeof(&kd_call_##t); \
		KD_MAP(KD_OPEN, t, ##__VA_ARGS__) \
		kd_call_##t(kd_f, 1, kd_f->keep KD_MAP(KD_PASS, t, ##__VA_ARGS__)); \
	} \
	KD_INLINE_BODY void kd_body_##t( \
		struct kdds_frame *kd_self __attribute__((unused)), struct kd_room *kd_room __attribute__((unused)) \
		KD_MAP(KD_PARAM, t, ##__VA_ARGS__) KD_ENTRY(1 KD_MAP(KD_ENTER, t, ##__VA_ARGS__)))
/** @endcond */

/** The body of a task declared by KDDS_TASK_DECLARE. */
#define KDDS_TASK_BODY(t, ...) \
	KD_MAP(KD_MODE, t, ##__VA_ARGS__) \
	KD_BODY(t, static, static inline, ##__VA_ARGS__)

/** The body of a task declared by KDDS_TASK_EXTERN, in one file of the program or library. */
#define KDDS_TASK_DEFINE(t, ...) \
	KD_MAP(KD_MODE, t, ##__VA_ARGS__) \
	char kd_parts_##t; \
	KD_BODY(t, , , ##__VA_ARGS__)

/**
 * Declares a task: its name and its parameters, followed by its body in braces.
 *
 *   VALUE(T, n)       is copied into the closure, which is smaller than 64 KiB; in the body, a T
 *   READ(T, a)        the body reads **a (const)
 *   WRITE(T, r)       the body overwrites **r; it must not read the old value
 *   UPDATE(T, x)      the body reads and writes **x with exclusive access
 *   REDUCE(T, s, op)  the body contributes to **s with the operator op, which is KDDS_SUM(T) or
 *                     another predefined operator, or the address of a KDDS_OP; when the body
 *                     starts, **s holds the neutral element or the result of earlier contributions
 *
 * READ_ARRAY, WRITE_ARRAY, UPDATE_ARRAY and REDUCE_ARRAY take data with a shape, and single objects
 * as arrays of one element. The other modes take single objects, and arrays of one element without
 * pack functions. Any other array ends the program with a line on stderr, because a task in another
 * process would have only one element of it.
 *
 * READ_LIST(T, xs), WRITE_LIST and UPDATE_LIST take as many references as the program passes by
 * kdds_list(refs, n), of single objects and of data with a shape. The body finds them in xs.ref[0]
 * to xs.ref[xs.count - 1]; **xs.ref[i] is a T, and kdds_count(xs.ref[i]) the number of its elements.
 *
 * Each name may have the prefix KDDS_, as in KDDS_READ(T, a), for programs in which another header
 * defines READ as a macro.
 *
 * A shared parameter is a reference: *r is the address of the data, and **r is the data. The body
 * passes the reference r itself to the tasks that it spawns. After that it does not access the data
 * until kdds_sync().
 */
#define KDDS_TASK(t, ...) KDDS_TASK_DECLARE(t, ##__VA_ARGS__) KDDS_TASK_BODY(t, ##__VA_ARGS__)

/** @cond internal */
#ifdef __cplusplus
#define KD_DECLARED(f) (void)0
#else
/* An error if f is not declared: gcc does not warn of a call, as this is a system header. */
#define KD_DECLARED(f) (void)sizeof(&f)
#endif
/** @endcond */

/** Spawns task @p t as the next child of the running task, as in kdds_spawn(fib, n - 1, x). In the
 *  body of a task this calls the body of t if nobody looks for work and t waits for nothing.
 *  Otherwise it commits a closure to the frame, in constant time and without a fence. Context: the
 *  body of a task, main between kdds_init and kdds_finalize, and functions that these call. */
#define kdds_spawn(t, ...) \
	(KD_DECLARED(kd_spawn_##t), kd_spawn_##t(kd_self, kd_room, 0, ##__VA_ARGS__))

/** The same with attributes, a bitwise OR of KDDS_LOCAL, KDDS_ON_WORKER(i), KDDS_ON_PLACE(i),
 *  KDDS_ON_RANK(r), KDDS_PRIORITY_HIGH and KDDS_PRIORITY_LOW. */
#define kdds_spawn_with(attributes, t, ...) \
	(KD_DECLARED(kd_spawn_##t), kd_spawn_##t(kd_self, kd_room, attributes, ##__VA_ARGS__))

/**
 * A parallel loop: runs the body of task @p t on consecutive parts of its index space until all of
 * it is done, each index once. The library finds the size of the parts. What is cut:
 *
 *   RANGE(i)            indices without data; pass kdds_range(begin, end). The body runs for
 *                       i.begin <= k < i.end
 *   READ_EACH(T, x)     the body gets some consecutive elements of an array, as a READ_ARRAY of its
 *   WRITE_EACH(T, x)    own: kdds_count(x) elements from (*x)[0] on. Of a two-dimensional view it
 *   UPDATE_EACH(T, x)   gets whole rows
 *
 * All that is cut has one length; element k of one belongs to element k of the others. An array of
 * one row is cut as a vector. It counts as one row if the view has gaps (ld > cols), or if the loop
 * has another view of one row with gaps or a RANGE of one index. To cut matrices that may have a
 * single row, add a RANGE over the rows. Other
 * parameters are VALUE, READ, READ_ARRAY, REDUCE and REDUCE_ARRAY: all parts see the same data.
 * Contributions are combined in an order that depends on the lengths of the loop and of the
 * reduced arrays alone, so results have the same bits on any number of workers and ranks. To later
 * tasks, the loop is one task. A body may spawn tasks and loops. kdds_spawn of such a task runs the
 * body once, on everything.
 *
 * Lengths that differ, and a parameter of mode WRITE or UPDATE that is not cut, end the program
 * with a line on stderr. Context: as kdds_spawn.
 */
#define kdds_for(t, ...) \
	(KD_DECLARED(kd_for_##t), kd_for_##t(kd_frame_of(kd_self), ##__VA_ARGS__))

/** The argument for a RANGE parameter: the indices from @p begin to @p end - 1. */
static inline struct kdds_range kdds_range(size_t begin, size_t end)
{
	struct kdds_range r = {begin, end};

	return r;
}

/** @cond internal */
#ifdef __cplusplus
#define KD_IN_BODY(room) \
	static_assert(std::is_same<decltype(room), struct kd_room *>::value, KD_FAIL_WHERE)
#else
#define KD_IN_BODY(room) \
	_Static_assert(__builtin_types_compatible_p(__typeof__(&(room)), struct kd_room **), \
		       KD_FAIL_WHERE)
#endif
#define KD_FAIL_WHERE \
	"kdds_fail: only the body of a task can fail; let functions return an error to it"
static inline void kd_fail(struct kd_room *room, int code, const char *text)
{
	room->failed = 1;
	kdds_fail_task(room->type, code, text);
}
/** @endcond */

/**
 * The running task has failed, for the reason @p text (the first 183 bytes are kept), with the
 * number @p code, which is not 0. The body goes on; it returns as usual. Its outputs, the data it was
 * passed for more than reading, have failed then: tasks that use them later in reference order are
 * skipped, so their outputs have failed, too. All other tasks run. A task that contributes to a
 * reduction by REDUCE does not use what others have contributed. kdds_sync returns the code.
 *
 * An exception that leaves the body of a task in C++ is such a failure, with the code
 * KDDS_EXCEPTION and the text of what().
 *
 * Context: the body of a task, not a function that it calls.
 */
#define kdds_fail(code, text) \
	do { \
		KD_IN_BODY(kd_room); \
		kd_fail(kd_room, code, text); \
	} while (0)

/** Outside the body of a task, each kdds_spawn looks up the running frame in the library (about
 *  2 ns). This declaration, at the start of a block of main or of a helper function, looks it up
 *  once for the whole block: KDDS_SELF; */
#define KDDS_SELF \
	struct kdds_frame *const kd_self __attribute__((unused)) = kdds_frame_current()

/** Declares @p x, a reference to a new T that lives until the block of the declaration has been left
 *  and the tasks that use it are complete. Like a local variable it is not initialised. */
#define KDDS_DATA(T, x) \
	KD_NEW(T) \
	kdds_data(T) kd_data_##x; \
	kd_handle(T) kd_handle_##x; \
	KD_LIFETIME(x); \
	T *const *const x = (kd_anchor_init_data(&kd_data_##x.at, kd_frame_data(&kd_life_##x, sizeof(T), __alignof__(T))), \
			     kd_make_handle(kd_handle_##x, kd_data_##x))
#endif
