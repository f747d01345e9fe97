// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "eigenveil/data/source.hpp"

// The Arrow C data and stream interfaces, as their specification prints them
// (https://arrow.apache.org/docs/format/CDataInterface.html, CStreamInterface.html): every Arrow library passes tables
// in these structs, so none of them is needed here.
extern "C" {

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  int64_t flags;
  int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
  int64_t null_count;
  int64_t offset;
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

#endif  // ARROW_C_STREAM_INTERFACE

}  // extern "C"

namespace eigenveil {

/// The rows of an Arrow stream, which is taken over and released by the source, whatever happens. One record batch is
/// held at a time, and nothing of it is copied but the chosen columns of the rows that are asked for.
///
/// Columns: whole and floating-point numbers, booleans (0 and 1), nulls; dictionaries of numbers or text; text where
/// the options have a list of its values, and only there; a list of fixed size is as many columns, "name.1", "name.2".
/// A null is a missing value, NaN. Other types are refused if such a column is chosen.
///
/// Lengths, offsets, dictionaries and buffers must fit together as the specification says; what they point to is
/// believed, since Arrow does not say how long a buffer is.
Result<std::unique_ptr<RowSource>> arrow_source(ArrowArrayStream* stream);

}  // namespace eigenveil
