// SPDX-License-Identifier: GPL-2.0
/*
 * A context file's metadata as JSON.  Fields are found by protobuf's message
 * descriptors, so a new field needs no change here.  Bytes are printed as
 * hexadecimal digits, 64-bit numbers as numbers; a byte of a string that is
 * not UTF-8 becomes \udcXX, like Python's surrogateescape.
 */
#include <inttypes.h>
#include <string.h>

#include "report/plain.h"
#include "view.h"

static void write_message(FILE *out, const ProtobufCMessage *message);

static void write_string(FILE *out, const char *text)
{
	const uint8_t *s = (const uint8_t *)text;

	putc('"', out);
	while (*s) {
		size_t length = plain_utf8((const char *)s);

		if (!length)
			fprintf(out, "\\udc%02x", *s);
		else if (*s == '"' || *s == '\\')
			fprintf(out, "\\%c", *s);
		else if (*s < 0x20 || *s == 0x7f)
			fprintf(out, "\\u%04x", *s);
		else if (*s == 0xc2 && s[1] < 0xa0)	/* control characters, too */
			fprintf(out, "\\u%04x", s[1]);
		else
			fwrite(s, 1, length, out);
		s += length ? length : 1;
	}
	putc('"', out);
}

static void write_bytes(FILE *out, const ProtobufCBinaryData *bytes)
{
	size_t i;

	putc('"', out);
	for (i = 0; i < bytes->len; i++)
		fprintf(out, "%02x", bytes->data[i]);
	putc('"', out);
}

static void write_enum(FILE *out, const ProtobufCFieldDescriptor *field, int number)
{
	const ProtobufCEnumValue *value =
		protobuf_c_enum_descriptor_get_value(field->descriptor, number);

	if (value)
		write_string(out, value->name);
	else
		fprintf(out, "%d", number);
}

static void write_value(FILE *out, const ProtobufCFieldDescriptor *field, const void *value)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
		fprintf(out, "%" PRId32, *(const int32_t *)value);
		break;
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
		fprintf(out, "%" PRIu32, *(const uint32_t *)value);
		break;
	case PROTOBUF_C_TYPE_INT64:
	case PROTOBUF_C_TYPE_SINT64:
	case PROTOBUF_C_TYPE_SFIXED64:
		fprintf(out, "%" PRId64, *(const int64_t *)value);
		break;
	case PROTOBUF_C_TYPE_UINT64:
	case PROTOBUF_C_TYPE_FIXED64:
		fprintf(out, "%" PRIu64, *(const uint64_t *)value);
		break;
	case PROTOBUF_C_TYPE_FLOAT:
		fprintf(out, "%.9g", (double)*(const float *)value);
		break;
	case PROTOBUF_C_TYPE_DOUBLE:
		fprintf(out, "%.17g", *(const double *)value);
		break;
	case PROTOBUF_C_TYPE_BOOL:
		fputs(*(const protobuf_c_boolean *)value ? "true" : "false", out);
		break;
	case PROTOBUF_C_TYPE_ENUM:
		write_enum(out, field, *(const int *)value);
		break;
	case PROTOBUF_C_TYPE_STRING:
		write_string(out, *(const char *const *)value);
		break;
	case PROTOBUF_C_TYPE_BYTES:
		write_bytes(out, value);
		break;
	case PROTOBUF_C_TYPE_MESSAGE:
		write_message(out, *(const ProtobufCMessage *const *)value);
		break;
	}
}

static size_t value_size(const ProtobufCFieldDescriptor *field)
{
	switch (field->type) {
	case PROTOBUF_C_TYPE_INT32:
	case PROTOBUF_C_TYPE_SINT32:
	case PROTOBUF_C_TYPE_SFIXED32:
	case PROTOBUF_C_TYPE_UINT32:
	case PROTOBUF_C_TYPE_FIXED32:
	case PROTOBUF_C_TYPE_FLOAT:
		return 4;
	case PROTOBUF_C_TYPE_BOOL:
		return sizeof(protobuf_c_boolean);
	case PROTOBUF_C_TYPE_ENUM:
		return sizeof(int);
	case PROTOBUF_C_TYPE_BYTES:
		return sizeof(ProtobufCBinaryData);
	default:
		return 8;	/* 64-bit numbers and pointers */
	}
}

static bool is_present(const ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
	const char *base = (const char *)message;
	const void *value = base + field->offset;
	bool is_pointer = field->type == PROTOBUF_C_TYPE_STRING ||
			  field->type == PROTOBUF_C_TYPE_MESSAGE;

	if (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF)
		return *(const uint32_t *)(base + field->quantifier_offset) == field->id;
	if (field->label == PROTOBUF_C_LABEL_REQUIRED)
		return true;
	if (is_pointer)
		return *(const void *const *)value != NULL;
	return *(const protobuf_c_boolean *)(base + field->quantifier_offset);
}

static void write_repeated(FILE *out, const ProtobufCMessage *message,
			   const ProtobufCFieldDescriptor *field)
{
	const char *base = (const char *)message;
	size_t count = *(const size_t *)(base + field->quantifier_offset), i;
	const char *array = *(const char *const *)(base + field->offset);

	putc('[', out);
	for (i = 0; i < count; i++) {
		if (i)
			putc(',', out);
		write_value(out, field, array + i * value_size(field));
	}
	putc(']', out);
}

/* The fields of a message that are present; repeated ones always. */
static void write_fields(FILE *out, const ProtobufCMessage *message)
{
	const char *separator = "";
	unsigned int i;

	for (i = 0; i < message->descriptor->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];
		bool repeated = field->label == PROTOBUF_C_LABEL_REPEATED;

		if (!repeated && !is_present(message, field))
			continue;
		fprintf(out, "%s\"%s\":", separator, field->name);
		separator = ",";
		if (repeated)
			write_repeated(out, message, field);
		else
			write_value(out, field, (const char *)message + field->offset);
	}
}

static void write_message(FILE *out, const ProtobufCMessage *message)
{
	putc('{', out);
	write_fields(out, message);
	putc('}', out);
}

/* ---- counts ------------------------------------------------------------------------ */

static void write_compression(FILE *out, const struct compression_count *count)
{
	fputs(",\"compression\":{", out);
	for (size_t i = 0; i < CONTEXT_COMPRESSIONS; i++)
		fprintf(out, "%s\"%s\":{\"chunks\":%" PRIu64 ",\"bytes\":%" PRIu64
			",\"stored\":%" PRIu64 "}", i ? "," : "", compression_names[i],
			count[i].chunks, count[i].bytes, count[i].stored);
	putc('}', out);
}

static void write_mapping(FILE *out, const Kcr__Vma *v, const struct summary_mapping *m)
{
	uint64_t all = (v->end - v->start) / CONTEXT_PAGE, saved = summary_saved(m);
	/* More than all: a file with pages twice. */
	uint64_t known = saved + m->older + m->pages[SUMMARY_SHARED] + m->pages[SUMMARY_DUPLICATE];

	fprintf(out, "{\"start\":%" PRIu64 ",\"end\":%" PRIu64 ",\"pages\":%" PRIu64, v->start,
		v->end, saved);
	for (size_t i = 0; i < CONTEXT_COMPRESSIONS; i++)
		fprintf(out, ",\"pages_%s\":%" PRIu64, compression_names[i], m->pages[i]);
	fprintf(out, ",\"pages_older\":%" PRIu64 ",\"pages_shared\":%" PRIu64 ",\"pages_duplicate\":%" PRIu64
		",\"pages_absent\":%" PRIu64 "}", m->older, m->pages[SUMMARY_SHARED],
		m->pages[SUMMARY_DUPLICATE], all > known ? all - known : 0);
}

static void write_memory(FILE *out, const Kcr__Mm *mm, const struct summary_memory *m)
{
	fprintf(out, ",\"memory\":{\"sections\":%" PRIu64 ",\"runs\":%" PRIu64 ",\"pages\":%" PRIu64
		",\"pages_older\":%" PRIu64 ",\"pages_shared\":%" PRIu64 ",\"pages_duplicate\":%" PRIu64,
		m->sections, m->runs, m->pages, m->older, m->shared, m->duplicates);
	write_compression(out, m->compression);
	fputs(",\"mappings\":[", out);
	for (size_t i = 0; mm && i < mm->n_vma; i++) {
		fputs(i ? ",\n" : "\n", out);
		write_mapping(out, mm->vma[i], &m->mapping[i]);
	}
	fputs("]}", out);
}

static void write_total(FILE *out, const struct context *c, const struct summary *s)
{
	const Kcr__Preamble *p = c->preamble;
	uint64_t older = 0;

	fprintf(out, ",\n\"complete\":true,\"bytes\":%" PRIu64 ",\"id\":\"%016" PRIx64 "\""
		",\"content_bytes\":%" PRIu64 ",\"pages\":%" PRIu64, s->bytes, s->id,
		s->content_bytes, s->pages);
	write_compression(out, s->compression);
	fputs(",\"older\":[", out);
	for (size_t i = 0; i < p->n_ancestor; i++) {
		fprintf(out, "%s{\"id\":\"%016" PRIx64 "\",\"pages\":%" PRIu64 "}", i ? "," : "",
			p->ancestor[i]->id, s->older[i]);
		older += s->older[i];
	}
	fprintf(out, "],\"pages_older\":%" PRIu64 ",\"pages_shared\":%" PRIu64 ",\"pages_duplicate\":%" PRIu64,
		older, s->shared, s->duplicates);
}

void json_write(FILE *out, const struct context *c, const struct summary *summary)
{
	size_t i;

	fputs("{\"format\":\"KCR context file\",\"format_version\":1,\n\"preamble\":", out);
	write_message(out, &c->preamble->base);
	fputs(",\n\"file\":[", out);
	for (i = 0; i < c->nr_files; i++) {
		fputs(i ? ",\n{" : "\n{", out);
		write_fields(out, &c->file[i]->base);
		if (summary)
			fprintf(out, ",\"content_bytes\":%" PRIu64, summary->content[i]);
		putc('}', out);
	}
	fputs("],\n\"process\":[", out);
	for (i = 0; i < c->nr_processes; i++) {
		fputs(i ? ",\n{" : "\n{", out);
		write_fields(out, &c->process[i]->base);
		if (summary)
			write_memory(out, c->process[i]->mm, &summary->memory[i]);
		putc('}', out);
	}
	putc(']', out);
	if (summary)
		write_total(out, c, summary);
	fputs("}\n", out);
}
