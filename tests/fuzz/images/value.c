// SPDX-License-Identifier: GPL-2.0
/*
 * Other values for the fields of a message, by its descriptor: boundary values, values
 * of other fields, hostile paths.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "images.h"

static const char *const paths[] = {
	"/canary/file", "/canary/new", "/canary", "/canary/sub/file", "/home/user/link",
	"/home/user/folder/new", "/home/user/../../canary/new", "/home/user/fifo", "/", "", ".",
	"relative", "/home/user/new\nline", "/proc/self/mem", "/proc/1/root/canary/file",
	"/proc/self/fd/0", "/dev/kcr", "/dev/full", "/etc/shadow", "%s%n%d", "/nowhere/at/all",
	"/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern",
};

#define NR_PATHS (sizeof(paths) / sizeof(paths[0]))

static uint64_t any_number(struct random *random, uint64_t old)
{
	static const uint64_t numbers[] = { 0, 1, 2, 3, 7, 10, 63, 64, 65, 100, 1000, 1001, 4095,
		4096, 4097, 65535, 65536, 1ull << 20, 0x7fffffff, 0x80000000, 0xffffffff,
		1ull << 32, 0x7fffffffe000, 0x7ffffffff000, 1ull << 47, 1ull << 62, INT64_MAX,
		1ull << 63, UINT64_MAX, 0xffffffff81000000, 0xffffffffff600000 };

	switch (below(random, 5)) {
	case 0:
		return old ^ 1ull << below(random, 64);
	case 1:
		return old + (int)below(random, 17) - 8;
	case 2:
		return old + ((int64_t)below(random, 17) - 8) * 4096;
	case 3:
		return random_next(random) >> below(random, 64);
	default:
		return numbers[below(random, sizeof(numbers) / sizeof(numbers[0]))];
	}
}

static char *any_string(struct random *random, const char *old)
{
	char *string;

	if (chance(random, 85))
		return strdup(paths[below(random, NR_PATHS)]);
	if (chance(random, 50)) {
		string = malloc(10001);
		memset(string, chance(random, 50) ? 'a' : '/', 10000);
		string[10000] = 0;
		return string;
	}
	string = strdup(old ? old : "");
	if (*string)
		string[below(random, strlen(string))] = 1 + below(random, 255);
	return string;
}

static void change_bytes(struct random *random, ProtobufCBinaryData *bytes)
{
	size_t length = chance(random, 70) ? bytes->len : below(random, 2 * bytes->len + 20);
	uint8_t *data = calloc(1, length + 1);
	int i;

	if (bytes->len)
		memcpy(data, bytes->data, bytes->len < length ? bytes->len : length);
	for (i = below(random, 8); i >= 0 && length; i--)
		data[below(random, length)] = random_next(random);
	free(bytes->data);
	bytes->data = data;
	bytes->len = length;
}

static size_t element_size(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_STRING:
	case PROTOBUF_C_TYPE_MESSAGE:
		return sizeof(void *);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
	case PROTOBUF_C_TYPE_DOUBLE:
		return 8;
	default:
		return 4;
	}
}

/* Changes one value that is present. */
static void change(struct random *random, const ProtobufCFieldDescriptor *field, void *at,
		   char *what, size_t size)
{
	char *string;
	size_t used = strlen(what);

	switch (field->type) {
	case PROTOBUF_C_TYPE_MESSAGE:
		if (*(ProtobufCMessage **)at)
			value_mutate(*(ProtobufCMessage **)at, random, what, size);
		break;
	case PROTOBUF_C_TYPE_STRING:
		string = any_string(random, *(char **)at);
		if (*(char **)at != field->default_value)
			free(*(char **)at);
		*(char **)at = string;
		snprintf(what + used, size - used, "=%.30s", string);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		change_bytes(random, at);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		*(protobuf_c_boolean *)at ^= 1;
		break;
	default:
		if (element_size(field) == 8)
			*(uint64_t *)at = any_number(random, *(uint64_t *)at);
		else
			*(uint32_t *)at = any_number(random, *(uint32_t *)at);
		snprintf(what + used, size - used, "=%#llx", element_size(field) == 8 ?
			 (unsigned long long)*(uint64_t *)at : *(uint32_t *)at);
	}
}

/* Adds or drops an element, or swaps two. */
static void change_array(struct random *random, const ProtobufCFieldDescriptor *field,
			 size_t *count, char **array)
{
	size_t size = element_size(field), a, b;
	char spare[64], *grown;

	if (chance(random, 40) || field->type >= PROTOBUF_C_TYPE_STRING) {
		a = below(random, *count);
		b = below(random, *count);
		memcpy(spare, *array + a * size, size);
		memcpy(*array + a * size, *array + b * size, size);
		memcpy(*array + b * size, spare, size);
		if (chance(random, 50))
			--*count;	/* leaked: the process is short-lived */
		return;
	}
	grown = realloc(*array, (*count + 1) * size);
	memcpy(grown + *count * size, grown + below(random, *count) * size, size);
	*array = grown;
	++*count;
}

static void mutate_repeated(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
			    struct random *random, char *what, size_t size)
{
	size_t *count = (size_t *)((char *)message + field->quantifier_offset);
	char **array = (char **)((char *)message + field->offset);

	if (!*count)
		return;
	if (chance(random, 20))
		change_array(random, field, count, array);
	else
		change(random, field, *array + below(random, *count) * element_size(field), what,
		       size);
}

static void mutate_one(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
		       struct random *random, char *what, size_t size)
{
	bool pointer = field->type == PROTOBUF_C_TYPE_STRING ||
		       field->type == PROTOBUF_C_TYPE_MESSAGE;
	uint32_t *has = (uint32_t *)((char *)message + field->quantifier_offset);
	void *at = (char *)message + field->offset;

	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) {
		if (*has == field->id)
			change(random, field, at, what, size);
		return;
	}
	if (field->label == PROTOBUF_C_LABEL_OPTIONAL && chance(random, 20)) {
		if (!pointer)
			*(protobuf_c_boolean *)has ^= 1;
		else if (field->type == PROTOBUF_C_TYPE_MESSAGE)
			*(void **)at = NULL;
		return;
	}
	if (field->label == PROTOBUF_C_LABEL_OPTIONAL && !pointer)
		*(protobuf_c_boolean *)has = 1;
	change(random, field, at, what, size);
}

void value_mutate(ProtobufCMessage *message, struct random *random, char *what, size_t size)
{
	const ProtobufCMessageDescriptor *type = message->descriptor;
	const ProtobufCFieldDescriptor *field;
	size_t used = strlen(what);

	if (!type->n_fields)
		return;
	field = &type->fields[below(random, type->n_fields)];
	snprintf(what + used, size - used, " %s.%s", type->short_name, field->name);
	if (field->label == PROTOBUF_C_LABEL_REPEATED)
		mutate_repeated(message, field, random, what, size);
	else
		mutate_one(message, field, random, what, size);
}
