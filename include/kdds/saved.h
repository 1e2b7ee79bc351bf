/* SPDX-License-Identifier: BSD-3-Clause */
/** @file
 * What kdds_checkpoint and kdds_restore know of their arguments: see kdds.h. Their types tell what
 * they are:
 *
 *   T *const *                        a reference
 *   T *const **, T *const *const *    the references of a list
 *   T *, T [n]                        variables
 *   an integer                        the length of the list before it
 *
 * Only the value is evaluated, once.
 */
#ifndef KDDS_SAVED_H
#define KDDS_SAVED_H

#pragma GCC system_header

#ifdef __cplusplus
#include <type_traits>
#endif

#include "kdds/inline.h"
#include "kdds/task.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/** @cond internal */
/** An argument. */
struct kdds_saved {
	uintptr_t at;  /* what was passed */
	size_t size;   /* bytes of an element; of a variable */
	uint16_t kind; /* enum kd_saved_kind */
	uint8_t type;  /* of an element: enum kd_saved_type */
	uint8_t flags; /* KD_SAVED_CONST and KD_SAVED_NO_BYTES */
	const char *name;
};
enum kd_saved_kind { KD_SAVED_VARIABLE, KD_SAVED_REF, KD_SAVED_LIST, KD_SAVED_NUMBER };
enum kd_saved_type { KD_SAVED_INTEGER = 1, KD_SAVED_REAL, KD_SAVED_STRUCT };
#define KD_SAVED_CONST 1    /* cannot be restored */
#define KD_SAVED_NO_BYTES 2 /* a pointer or a C++ object: needs pack functions */
#define KD_SAVED_POINTER "a pointer means nothing in another process: give what it points to, by a reference"

int kdds_checkpoint_state(const char *name, const struct kdds_saved *state, size_t n);
int kdds_restore_state(const char *name, const struct kdds_saved *state, size_t n);

#ifdef __cplusplus
}
template <typename T> struct kd_saved_element {
	static constexpr size_t size = sizeof(T);
	static constexpr uint8_t type =
		std::is_floating_point<T>::value ? KD_SAVED_REAL :
		std::is_class<T>::value || std::is_union<T>::value ? KD_SAVED_STRUCT : KD_SAVED_INTEGER;
	static constexpr uint8_t flags =
		(std::is_const<T>::value ? KD_SAVED_CONST : 0) |
		(std::is_pointer<T>::value || !std::is_trivially_copyable<T>::value ? KD_SAVED_NO_BYTES : 0);
};
template <typename T> struct kd_saved_of : kd_saved_element<std::remove_all_extents_t<T>> {
	static_assert(!std::is_pointer<std::remove_all_extents_t<T>>::value, KD_SAVED_POINTER);
	static_assert(std::is_trivially_copyable<T>::value,
		      "a checkpoint has the bytes of variables, but this type is not trivially copyable");
	static constexpr size_t size = sizeof(T);
	static constexpr uint16_t kind = KD_SAVED_VARIABLE;
};
template <typename T> struct kd_saved_of<T *const> : kd_saved_element<T> {
	static constexpr uint16_t kind = KD_SAVED_REF;
};
template <typename T> struct kd_saved_of<T *const *> : kd_saved_element<T> {
	static constexpr uint16_t kind = KD_SAVED_LIST;
};
template <typename T> struct kd_saved_of<T *const *const> : kd_saved_of<T *const *> {};
template <typename T> struct kd_saved_of<T *> {
	static_assert(sizeof(T *) == 0, KD_SAVED_POINTER);
};
template <typename T> inline kdds_saved kd_save(T *at, const char *name)
{
	using of = kd_saved_of<T>;

	return {reinterpret_cast<uintptr_t>(at), of::size, of::kind, of::type, of::flags, name};
}
template <typename A> struct kd_saving {
	static_assert(std::is_integral<A>::value, "kdds_checkpoint takes references and addresses of variables");
	static kdds_saved save(A n, const char *name)
	{
		return {static_cast<uintptr_t>(n), 0, KD_SAVED_NUMBER, 0, 0, name};
	}
};
template <typename T> struct kd_saving<T *> {
	static kdds_saved save(T *at, const char *name) { return kd_save(at, name); }
};
template <typename T, size_t N> struct kd_saving<T[N]> {
	static kdds_saved save(T (&at)[N], const char *name)
	{
		kdds_saved s = kd_save(&at[0], name);

		if (s.kind == KD_SAVED_VARIABLE)
			s.size = sizeof(at);
		return s;
	}
};
/* const applies to the elements of an array, but of a pointer or number it says nothing */
template <typename A> inline kdds_saved kd_save_any(A &&at, const char *name)
{
	using type = std::remove_reference_t<A>;

	return kd_saving<std::conditional_t<std::is_array<type>::value, type, std::remove_cv_t<type>>>::save(at, name);
}
struct kd_saved_state {
	kdds_saved at[KDDS_MAX_PARAMS + 1];
};
extern "C" {
#define KD_SAVE(t, x) kd_save_any(x, #x),
#define KD_STATE(...) kd_saved_state{{KD_MAP(KD_SAVE, kd, __VA_ARGS__) {0, 0, 0, 0, 0, nullptr}}}.at, KD_COUNT(kd, __VA_ARGS__)
#else
#define KD_SAVED_SAME(T, U) __builtin_types_compatible_p(T, U)
/* e decays to a pointer if it is an array */
#define KD_SAVED_VALUE(e) __typeof__((void)0, e)
#define KD_SAVED_DECAYS(e) (!KD_SAVED_SAME(__typeof__(e), KD_SAVED_VALUE(e)))
#define KD_SAVED_POINTS(e) (KD_IS_POINTER(e) && !KD_SAVED_DECAYS(e))
/* what e points to; a char if it is no pointer */
#define KD_SAVED_NEXT(e) (*__builtin_choose_expr(KD_SAVED_POINTS(e), e, (char *)0))
/* an element of e, if it is an array */
#define KD_SAVED_INNER(e) (*__builtin_choose_expr(KD_SAVED_DECAYS(e), e, &(e)))
/* The variables have types only: if the macros took x instead, it would be copied thousands of
 * times. kd_1 points to what x points to, kd_2 to what that points to, and so on; kd_e to an
 * element, kd_b to an element of that if it is an array, of at most two dimensions. */
#define KD_SAVE(t, x) __extension__ ({ \
	__typeof__((void)0, (x)) kd_x = (x); \
	__typeof__(KD_SAVED_NEXT(kd_x)) *kd_1 = NULL; \
	__typeof__(KD_SAVED_NEXT(*kd_1)) *kd_2 = NULL; \
	__typeof__(KD_SAVED_NEXT(*kd_2)) *kd_3 = NULL; \
	enum { \
		kd_is_list = KD_SAVED_POINTS(*kd_2) && \
			     KD_SAVED_SAME(__typeof__(*kd_1), __typeof__(*kd_3) *const *), \
		kd_is_ref = KD_SAVED_POINTS(*kd_1) && !kd_is_list && \
			    KD_SAVED_SAME(__typeof__(kd_x), __typeof__(*kd_2) *const *), \
		kd_kind = !KD_IS_POINTER(kd_x) ? KD_SAVED_NUMBER : kd_is_list ? KD_SAVED_LIST : \
			  kd_is_ref ? KD_SAVED_REF : KD_SAVED_VARIABLE \
	}; \
	__typeof__(__builtin_choose_expr(kd_is_list, kd_3, __builtin_choose_expr(kd_is_ref, kd_2, kd_1))) kd_e = NULL; \
	__typeof__(KD_SAVED_INNER(*kd_e)) *kd_d = NULL; \
	__typeof__(KD_SAVED_INNER(*kd_d)) *kd_b = NULL; \
	_Static_assert(__builtin_classify_type(x) <= 5, \
		       "kdds_checkpoint takes references and addresses of variables"); \
	_Static_assert((int)kd_kind != KD_SAVED_VARIABLE || !KD_IS_POINTER(*kd_b), KD_SAVED_POINTER); \
	(void)kd_3, (void)kd_e, (void)kd_d, (void)kd_b; \
	(struct kdds_saved){ \
		(uintptr_t)kd_x, (int)kd_kind == KD_SAVED_VARIABLE && KD_SAVED_DECAYS(x) ? sizeof(x) : sizeof(*kd_e), \
		(uint16_t)kd_kind, \
		__builtin_classify_type(*kd_b) == 8 ? KD_SAVED_REAL : \
		__builtin_classify_type(*kd_b) >= 9 ? KD_SAVED_STRUCT : KD_SAVED_INTEGER, \
		(KD_SAVED_SAME(__typeof__(kd_b), const KD_SAVED_VALUE(*kd_b) *) ? KD_SAVED_CONST : 0) | \
		(KD_IS_POINTER(*kd_b) ? KD_SAVED_NO_BYTES : 0), \
		#x}; \
}),
#define KD_STATE(...) \
	(const struct kdds_saved[]){KD_MAP(KD_SAVE, kd, __VA_ARGS__) {0, 0, 0, 0, 0, NULL}}, \
	KD_COUNT(kd, __VA_ARGS__)
#endif
/** @endcond */

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
