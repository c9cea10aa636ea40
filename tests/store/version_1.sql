CREATE TABLE documents (
	doc_id VARCHAR NOT NULL, 
	sha256 VARCHAR, 
	file_path VARCHAR, 
	processed_at VARCHAR, 
	fingerprint VARCHAR, 
	decision VARCHAR, 
	error_code VARCHAR, 
	replaced BOOLEAN NOT NULL, 
	PRIMARY KEY (doc_id)
);
CREATE INDEX ix_documents_file_path ON documents (file_path);
CREATE INDEX ix_documents_sha256 ON documents (sha256);
CREATE TABLE cases (
	case_id VARCHAR NOT NULL, 
	doc_id VARCHAR, 
	kind VARCHAR, 
	pdf_filename VARCHAR, 
	pages INTEGER, 
	blocker INTEGER, 
	major INTEGER, 
	minor INTEGER, 
	decision_reason VARCHAR, 
	review_reason VARCHAR, 
	review_status VARCHAR, 
	created_at VARCHAR, 
	dominant_type VARCHAR DEFAULT '' NOT NULL, 
	agents VARCHAR DEFAULT '' NOT NULL, 
	source VARCHAR DEFAULT '' NOT NULL, 
	is_blind BOOLEAN DEFAULT 0 NOT NULL, 
	barred VARCHAR DEFAULT '' NOT NULL, 
	shows VARCHAR DEFAULT '' NOT NULL, 
	folded_name VARCHAR DEFAULT '' NOT NULL, 
	folded_id VARCHAR DEFAULT '' NOT NULL, 
	standing INTEGER GENERATED ALWAYS AS (CASE review_status WHEN 'completed' THEN 2 WHEN 'deferred' THEN 1 ELSE 0 END) STORED, 
	is_hidden BOOLEAN GENERATED ALWAYS AS (is_blind AND review_status != 'completed') STORED, 
	told_severity VARCHAR GENERATED ALWAYS AS (CASE WHEN is_blind AND review_status != 'completed' THEN '' WHEN blocker > 0 THEN 'BLOCKER' WHEN major > 0 THEN 'MAJOR' WHEN minor > 0 THEN 'MINOR' ELSE 'none' END) STORED, 
	told_type VARCHAR GENERATED ALWAYS AS (CASE WHEN (is_blind AND review_status != 'completed') OR created_at IS NULL THEN '' WHEN dominant_type = '' THEN 'cannot tell' ELSE dominant_type END) STORED, 
	told_agents VARCHAR GENERATED ALWAYS AS (CASE WHEN is_blind AND review_status != 'completed' THEN '' ELSE agents END) STORED, 
	told VARCHAR GENERATED ALWAYS AS (CASE WHEN is_blind AND review_status != 'completed' THEN '' WHEN blocker > 0 THEN 'BLOCKER' WHEN major > 0 THEN 'MAJOR' WHEN minor > 0 THEN 'MINOR' ELSE 'none' END || '' || CASE WHEN (is_blind AND review_status != 'completed') OR created_at IS NULL THEN '' WHEN dominant_type = '' THEN 'cannot tell' ELSE dominant_type END || '' || CASE WHEN is_blind AND review_status != 'completed' THEN '' ELSE agents END || '' || coalesce(review_reason, '') || '' || coalesce(source, '') || '' || coalesce(kind, '')) STORED, 
	PRIMARY KEY (case_id)
);
CREATE INDEX ix_cases_doc_id ON cases (doc_id);
CREATE INDEX ix_cases_listed ON cases (standing, blocker DESC, major DESC, minor DESC, case_id) WHERE standing < 2;
CREATE INDEX ix_cases_shows ON cases (shows);
CREATE INDEX ix_cases_asked ON cases (standing, told, created_at, folded_name, folded_id, told_severity, told_type, told_agents, review_reason, source, kind, pages, blocker, major, minor, doc_id, case_id);
CREATE INDEX ix_cases_worst ON cases (review_status, blocker DESC, major DESC, minor DESC, case_id);
CREATE INDEX ix_cases_review_status ON cases (review_status);
CREATE TABLE closings (
	case_id VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	closed_at VARCHAR NOT NULL, 
	seconds_active FLOAT, 
	PRIMARY KEY (case_id)
);
CREATE INDEX ix_closings_closed_at ON closings (closed_at);
CREATE INDEX ix_closings_reviewer ON closings (reviewer);
CREATE TABLE claims (
	case_id VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	session VARCHAR NOT NULL, 
	since VARCHAR NOT NULL, 
	expires_at VARCHAR NOT NULL, 
	PRIMARY KEY (case_id)
);
CREATE TABLE drafts (
	case_id VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	session VARCHAR NOT NULL, 
	packet_sha256 VARCHAR NOT NULL, 
	draft VARCHAR NOT NULL, 
	saved_at VARCHAR NOT NULL, 
	PRIMARY KEY (case_id, reviewer, session)
);
CREATE TABLE deferrals (
	case_id VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	reason VARCHAR NOT NULL, 
	deferred_at VARCHAR NOT NULL, 
	PRIMARY KEY (case_id)
);
CREATE TABLE calls (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	question VARCHAR NOT NULL, 
	document VARCHAR NOT NULL, 
	role VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	asked_at VARCHAR NOT NULL, 
	seconds FLOAT NOT NULL, 
	answer VARCHAR, 
	failure VARCHAR, 
	input_tokens INTEGER NOT NULL, 
	output_tokens INTEGER NOT NULL, 
	cached_tokens INTEGER NOT NULL, 
	thought_tokens INTEGER NOT NULL, 
	cost_usd VARCHAR
);
CREATE INDEX ix_calls_document ON calls (document);
CREATE INDEX ix_calls_question ON calls (question);
CREATE TABLE fresh (
	"after" INTEGER NOT NULL, 
	PRIMARY KEY ("after")
);
CREATE TABLE views (
	number INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	case_id VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	opened_at VARCHAR NOT NULL
);
CREATE INDEX ix_views_case_id ON views (case_id);
CREATE TABLE heads (
	case_id VARCHAR NOT NULL, 
	revision INTEGER NOT NULL, 
	sha256 VARCHAR NOT NULL, 
	PRIMARY KEY (case_id)
);
CREATE TABLE schema_number (
	number INTEGER NOT NULL
);
