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
	PRIMARY KEY (case_id)
);
CREATE INDEX ix_cases_doc_id ON cases (doc_id);
CREATE INDEX ix_cases_review_status ON cases (review_status);
CREATE TABLE claims (
	case_id VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	session VARCHAR NOT NULL, 
	since VARCHAR NOT NULL, 
	expires_at VARCHAR NOT NULL, 
	PRIMARY KEY (case_id)
);
CREATE TABLE closings (
	case_id VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	closed_at VARCHAR NOT NULL, 
	PRIMARY KEY (case_id)
);
CREATE INDEX ix_closings_reviewer ON closings (reviewer);
CREATE INDEX ix_closings_closed_at ON closings (closed_at);
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
CREATE INDEX ix_documents_sha256 ON documents (sha256);
CREATE INDEX ix_documents_file_path ON documents (file_path);
CREATE TABLE drafts (
	case_id VARCHAR NOT NULL, 
	reviewer VARCHAR NOT NULL, 
	session VARCHAR NOT NULL, 
	packet_sha256 VARCHAR NOT NULL, 
	draft VARCHAR NOT NULL, 
	saved_at VARCHAR NOT NULL, 
	PRIMARY KEY (case_id, reviewer, session)
);
