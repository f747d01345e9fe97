// SPDX-License-Identifier: Apache-2.0
#include "schema.hpp"

namespace eigenveil::ledger {

// The triggers hold what the code promises: budgets never change, a charge is never deleted or lowered, and only an
// unused reservation can be returned. A filter is fixed while anything is charged.
const char* const kFirstFormat = R"sql(
CREATE TABLE dataset(
  id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, epsilon REAL, delta REAL, adjacency TEXT NOT NULL,
  unit TEXT NOT NULL, created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  filter INTEGER NOT NULL DEFAULT 0 CHECK (filter BETWEEN 0 AND 3), alpha INTEGER NOT NULL DEFAULT 0,
  CHECK ((epsilon IS NULL) = (delta IS NULL))) STRICT;
CREATE TABLE reservation(
  id INTEGER PRIMARY KEY AUTOINCREMENT, dataset INTEGER NOT NULL REFERENCES dataset(id), purpose TEXT NOT NULL,
  created TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now')),
  state TEXT NOT NULL DEFAULT 'reserved' CHECK (state IN ('reserved', 'answered', 'unused', 'returned'))) STRICT;
CREATE TABLE event(
  reservation INTEGER NOT NULL REFERENCES reservation(id), position INTEGER NOT NULL, label TEXT NOT NULL,
  mechanism TEXT NOT NULL, count INTEGER NOT NULL CHECK (count > 0),
  PRIMARY KEY (reservation, position)) STRICT, WITHOUT ROWID;
CREATE INDEX reservation_of_dataset ON reservation(dataset);

CREATE TRIGGER dataset_kept BEFORE DELETE ON dataset BEGIN SELECT RAISE(ABORT, 'a data set is never deleted'); END;
CREATE TRIGGER dataset_fixed BEFORE UPDATE ON dataset
  WHEN (OLD.id, OLD.name, OLD.adjacency, OLD.unit, OLD.created) IS NOT
       (NEW.id, NEW.name, NEW.adjacency, NEW.unit, NEW.created)
    OR (OLD.epsilon, OLD.delta) IS NOT (NEW.epsilon, NEW.delta)
    OR EXISTS (SELECT 1 FROM reservation WHERE dataset = OLD.id AND state <> 'returned')
  BEGIN SELECT RAISE(ABORT, 'a budget never changes, nor its filter while anything is charged'); END;
CREATE TRIGGER reservation_kept BEFORE DELETE ON reservation
  BEGIN SELECT RAISE(ABORT, 'a reservation is never deleted'); END;
CREATE TRIGGER reservation_fixed BEFORE UPDATE ON reservation
  WHEN (OLD.id, OLD.dataset, OLD.purpose, OLD.created) IS NOT (NEW.id, NEW.dataset, NEW.purpose, NEW.created)
    OR (OLD.state, NEW.state) NOT IN (VALUES ('reserved', 'answered'), ('reserved', 'unused'), ('unused', 'returned'))
  BEGIN SELECT RAISE(ABORT, 'a charge is never lowered'); END;
CREATE TRIGGER event_kept BEFORE DELETE ON event BEGIN SELECT RAISE(ABORT, 'an event is never deleted'); END;
CREATE TRIGGER event_fixed BEFORE UPDATE ON event BEGIN SELECT RAISE(ABORT, 'an event never changes'); END;
)sql";

// From format 1 to 2: a data set may allow guarantees that rest on a model of its rows.
const char* const kSecondFormat = R"sql(
ALTER TABLE dataset ADD COLUMN allow_model_based INTEGER NOT NULL DEFAULT 0 CHECK (allow_model_based IN (0, 1));
CREATE TRIGGER dataset_model_fixed BEFORE UPDATE ON dataset
  WHEN OLD.allow_model_based IS NOT NEW.allow_model_based
  BEGIN SELECT RAISE(ABORT, 'what a data set allows never changes'); END;
)sql";

// From format 2 to 3: works, which outlive their process; the files of a data set, by keyed hashes of their path and
// content; data sets that are frozen since an older copy of the ledger came back; checksums of all rows; and a head
// that covers them, with a generation that every change raises. A work that has ended stays as it ended, its step never
// falls, and it answers only what its reservation has recorded as answered.
const char* const kThirdFormat = R"sql(
ALTER TABLE reservation ADD COLUMN model_based INTEGER NOT NULL DEFAULT 0 CHECK (model_based IN (0, 1));
CREATE TRIGGER reservation_model_fixed BEFORE UPDATE ON reservation WHEN OLD.model_based IS NOT NEW.model_based
  BEGIN SELECT RAISE(ABORT, 'what a charge rests on never changes'); END;
CREATE TABLE work(
  id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, reservation INTEGER NOT NULL UNIQUE REFERENCES reservation(id),
  state TEXT NOT NULL DEFAULT 'reserved'
    CHECK (state IN ('reserved', 'met', 'answering', 'closed', 'ended', 'expired', 'lost')),
  generation INTEGER NOT NULL, step INTEGER NOT NULL DEFAULT 0, met BLOB NOT NULL DEFAULT x'',
  head BLOB NOT NULL DEFAULT x'', expires TEXT NOT NULL) STRICT;
CREATE TABLE pinned(
  work INTEGER NOT NULL REFERENCES work(id), name TEXT NOT NULL, value BLOB NOT NULL,
  PRIMARY KEY (work, name)) STRICT, WITHOUT ROWID;
CREATE TABLE file(
  id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset(id), path TEXT NOT NULL, content TEXT NOT NULL,
  UNIQUE (dataset, path, content)) STRICT;
CREATE TABLE frozen(
  id INTEGER PRIMARY KEY REFERENCES dataset(id),
  since TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%SZ', 'now'))) STRICT;
CREATE TABLE seal(
  name TEXT NOT NULL, row INTEGER NOT NULL, checksum BLOB NOT NULL, PRIMARY KEY (name, row)) STRICT, WITHOUT ROWID;
CREATE TABLE head(
  id INTEGER PRIMARY KEY CHECK (id = 0), generation INTEGER NOT NULL, previous BLOB NOT NULL, rows INTEGER NOT NULL,
  sum BLOB NOT NULL, checksum BLOB NOT NULL) STRICT;
INSERT INTO head VALUES (0, 0, zeroblob(32), 0, zeroblob(32), zeroblob(32));

CREATE TRIGGER work_kept BEFORE DELETE ON work BEGIN SELECT RAISE(ABORT, 'a work is never deleted'); END;
CREATE TRIGGER work_fixed BEFORE UPDATE ON work
  WHEN (OLD.id, OLD.key, OLD.reservation, OLD.generation, OLD.expires) IS NOT
       (NEW.id, NEW.key, NEW.reservation, NEW.generation, NEW.expires)
    OR OLD.state IN ('closed', 'ended', 'expired', 'lost') OR NEW.step < OLD.step
    OR (OLD.state = 'answering' AND NEW.state IN ('reserved', 'met'))
    OR (OLD.met <> x'' AND NEW.met <> OLD.met)
  BEGIN SELECT RAISE(ABORT, 'a work never goes back'); END;
CREATE TRIGGER work_charged BEFORE UPDATE ON work
  WHEN (NEW.state = 'answering' OR NEW.step > 0)
    AND (SELECT state FROM reservation WHERE id = NEW.reservation) IS NOT 'answered'
  BEGIN SELECT RAISE(ABORT, 'an answer before its charge'); END;
CREATE TRIGGER pinned_kept BEFORE DELETE ON pinned BEGIN SELECT RAISE(ABORT, 'a pinned fact is never deleted'); END;
CREATE TRIGGER pinned_fixed BEFORE UPDATE ON pinned BEGIN SELECT RAISE(ABORT, 'a pinned fact never changes'); END;
CREATE TRIGGER file_kept BEFORE DELETE ON file BEGIN SELECT RAISE(ABORT, 'a file is never taken from its data set'); END;
CREATE TRIGGER file_fixed BEFORE UPDATE ON file
  BEGIN SELECT RAISE(ABORT, 'a file is never taken from its data set'); END;
CREATE TRIGGER head_kept BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'the head is never deleted'); END;
CREATE TRIGGER head_rises BEFORE UPDATE ON head WHEN NEW.generation <= OLD.generation
  BEGIN SELECT RAISE(ABORT, 'the generation only rises'); END;
)sql";

// From format 3 to 4: which file was written for a charge.
const char* const kFourthFormat = R"sql(
CREATE TABLE model(id INTEGER PRIMARY KEY REFERENCES reservation(id), sha256 TEXT NOT NULL) STRICT;
CREATE TRIGGER model_kept BEFORE DELETE ON model BEGIN SELECT RAISE(ABORT, 'a record of a model is never deleted'); END;
CREATE TRIGGER model_fixed BEFORE UPDATE ON model BEGIN SELECT RAISE(ABORT, 'a record of a model never changes'); END;
)sql";

// From format 4 to 5: the one list of people that a data set knows; and what lies in folders, many keyed hashes to a
// row. A data set of people from before knows files and not which of them is the list: an empty one, that is settled
// once.
const char* const kFifthFormat = R"sql(
CREATE TABLE people(id INTEGER PRIMARY KEY REFERENCES dataset(id), content TEXT NOT NULL) STRICT;
CREATE TRIGGER people_kept BEFORE DELETE ON people BEGIN SELECT RAISE(ABORT, 'a list of people is never deleted'); END;
CREATE TRIGGER people_fixed BEFORE UPDATE ON people WHEN OLD.id IS NOT NEW.id OR OLD.content <> ''
  BEGIN SELECT RAISE(ABORT, 'a list of people never changes'); END;
CREATE TABLE part(
  id INTEGER PRIMARY KEY, dataset INTEGER NOT NULL REFERENCES dataset(id), hashes BLOB NOT NULL) STRICT;
CREATE TRIGGER part_kept BEFORE DELETE ON part BEGIN SELECT RAISE(ABORT, 'a file is never taken from its data set'); END;
CREATE TRIGGER part_fixed BEFORE UPDATE ON part
  BEGIN SELECT RAISE(ABORT, 'a file is never taken from its data set'); END;
INSERT INTO people SELECT id, '' FROM dataset
  WHERE unit LIKE 'person:%' AND EXISTS (SELECT 1 FROM file WHERE file.dataset = dataset.id);
)sql";

}  // namespace eigenveil::ledger
