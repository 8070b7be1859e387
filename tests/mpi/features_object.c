// SPDX-License-Identifier: GPL-2.0
/* Attributes, error handlers and info objects, made before the pause.  See features.h. */
#include "features.h"

#include <stdio.h>
#include <string.h>

/* ---- attributes, of communicators, types and windows ----------------------------------------- */

static MPI_Comm owner;
static MPI_Datatype type, type_too;
static int on_comm, on_type, copied, deleted, here;
static int *tag_limit, *universe;

static int copy_comm(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	(void)comm;
	CHECK(key == on_comm && extra == &here);
	*(void **)out = (char *)in + 1;
	*flag = 1;
	copied++;
	return MPI_SUCCESS;
}

static int delete_comm(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)value;
	CHECK(key == on_comm && extra == &here);
	deleted++;
	return MPI_SUCCESS;
}

static void attributes_open(void)
{
	int flag;

	MPI_Comm_create_keyval(copy_comm, delete_comm, &on_comm, &here);
	MPI_Type_create_keyval(MPI_TYPE_DUP_FN, MPI_TYPE_NULL_DELETE_FN, &on_type, NULL);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &tag_limit, &flag);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &universe, &flag);
}

static void attributes_begin(int round)
{
	copied = deleted = 0;
	MPI_Comm_dup(MPI_COMM_SELF, &owner);
	MPI_Comm_set_attr(owner, on_comm, (char *)NULL + 10 * round);
	MPI_Type_contiguous(3, MPI_INT, &type);
	MPI_Type_set_attr(type, on_type, (char *)NULL + round);
	MPI_Type_dup(type, &type_too);
}

static void attributes_end(int round)
{
	MPI_Comm twin;
	void *value;
	int flag, *now;

	MPI_Comm_dup(owner, &twin);
	MPI_Comm_get_attr(twin, on_comm, &value, &flag);
	CHECK(flag && value == (char *)NULL + 10 * round + 1);
	MPI_Comm_free(&twin);
	MPI_Comm_delete_attr(owner, on_comm);
	MPI_Comm_get_attr(owner, on_comm, &value, &flag);
	CHECK(!flag && copied == 1 && deleted == 2);
	MPI_Comm_free(&owner);
	MPI_Type_get_attr(type_too, on_type, &value, &flag);
	CHECK(flag && value == (char *)NULL + round);
	MPI_Type_free(&type);
	MPI_Type_free(&type_too);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &now, &flag);
	CHECK(flag && now == tag_limit && *now >= 32767);
	MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_UNIVERSE_SIZE, &now, &flag);
	CHECK(now == universe);
}

static void attributes_close(void)
{
	MPI_Comm_free_keyval(&on_comm);
	MPI_Type_free_keyval(&on_type);
}

/* ---- error handlers, classes and codes ------------------------------------------------------- */

static MPI_Errhandler handler;
static MPI_Comm faulty, strict;
static int class, code, handled, last;

static void handle(MPI_Comm *comm, int *error, ...)
{
	CHECK(*comm == faulty);
	handled++;
	last = *error;
}

static void errors_open(void)
{
	MPI_Add_error_class(&class);
	MPI_Add_error_code(class, &code);
	MPI_Add_error_string(code, "an error of the program's own");
	MPI_Comm_create_errhandler(handle, &handler);
}

static void errors_begin(int round)
{
	(void)round;
	handled = 0;
	MPI_Comm_dup(MPI_COMM_WORLD, &faulty);
	MPI_Comm_set_errhandler(faulty, handler);
	MPI_Comm_dup(MPI_COMM_WORLD, &strict);
	MPI_Comm_set_errhandler(strict, MPI_ERRORS_RETURN);
}

static void errors_end(int round)
{
	char text[MPI_MAX_ERROR_STRING];
	int length, kind, short_of[2], err;
	MPI_Request request;
	MPI_Errhandler now;

	MPI_Send(&round, 1, MPI_INT, size + 5, 0, faulty);
	MPI_Error_class(last, &kind);
	CHECK(handled == 1 && kind == MPI_ERR_RANK);
	MPI_Comm_call_errhandler(faulty, code);
	CHECK(handled == 2 && last == code);
	MPI_Error_class(code, &kind);
	MPI_Error_string(code, text, &length);
	CHECK(kind == class && !strcmp(text, "an error of the program's own"));
	err = MPI_Send(&round, 1, MPI_INT, rank, -5, strict);
	MPI_Error_class(err, &kind);
	CHECK(kind == MPI_ERR_TAG);
	MPI_Isend(&(int[3]){ 1, 2, 3 }, 3, MPI_INT, rank, 1, strict, &request);
	err = MPI_Recv(short_of, 2, MPI_INT, rank, 1, strict, MPI_STATUS_IGNORE);
	MPI_Error_class(err, &kind);
	CHECK(kind == MPI_ERR_TRUNCATE);
	MPI_Wait(&request, MPI_STATUS_IGNORE);
	MPI_Comm_get_errhandler(faulty, &now);
	CHECK(now == handler);
	MPI_Errhandler_free(&now);
	MPI_Comm_free(&faulty);
	MPI_Comm_free(&strict);
}

static void errors_close(void)
{
	MPI_Errhandler_free(&handler);
}

/* ---- info objects ---------------------------------------------------------------------------- */

static MPI_Info info;
static MPI_Comm told;

static void info_begin(int round)
{
	char value[16];

	MPI_Info_create(&info);
	snprintf(value, sizeof(value), "round %d", round);
	MPI_Info_set(info, "first", value);
	MPI_Info_set(info, "second", "2");
	MPI_Comm_dup(MPI_COMM_SELF, &told);
	MPI_Comm_set_info(told, info);
}

static void info_end(int round)
{
	char value[MPI_MAX_INFO_VAL + 1], expected[16], key[MPI_MAX_INFO_KEY + 1];
	MPI_Info copy, said;
	int flag, count, length;

	snprintf(expected, sizeof(expected), "round %d", round);
	MPI_Info_dup(info, &copy);
	MPI_Info_delete(info, "second");
	MPI_Info_get_nkeys(info, &count);
	CHECK(count == 1);
	MPI_Info_get_nthkey(info, 0, key);
	MPI_Info_get_valuelen(info, "first", &length, &flag);
	CHECK(!strcmp(key, "first") && flag && length == (int)strlen(expected));
	MPI_Info_get(copy, "first", MPI_MAX_INFO_VAL, value, &flag);
	CHECK(flag && !strcmp(value, expected));
	MPI_Info_get(copy, "second", MPI_MAX_INFO_VAL, value, &flag);
	CHECK(flag && !strcmp(value, "2"));
	MPI_Comm_get_info(told, &said);
	MPI_Info_free(&said);
	MPI_Comm_free(&told);
	MPI_Info_free(&copy);
	MPI_Info_free(&info);
}

const struct feature object_features[] = {
	{ "attributes", attributes_begin, attributes_end, attributes_open, attributes_close },
	{ "errors", errors_begin, errors_end, errors_open, errors_close },
	{ "info", info_begin, info_end, NULL, NULL },
	{ 0 }
};
