SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE TYPE public.session_actor AS (
	actor_kind text,
	actor_id text
);
CREATE FUNCTION public.record_session_event(session uuid, application uuid, happened timestamp with time zone, event text, actor text, actor_name text, facts jsonb, events_max integer, facts_bytes_max integer, lock_space integer) RETURNS bigint
    LANGUAGE plpgsql
    AS $$
  declare
    known integer;
    written bigint;
  begin
    if event not in ('session.release_requested', 'session.end_decided', 'session.ended') then
      select count(*) into known
        from (select 1 from session_events where session_id = session limit events_max + 1) as counted;
      if known > events_max then
        return null;
      end if;
      if known = events_max then
        event := 'session.events_limited';
        actor := 'service';
        actor_name := null;
        facts := jsonb_build_object('limit', events_max);
      end if;
    end if;
    if octet_length(facts::text) > facts_bytes_max then
      facts := jsonb_build_object('cut', true);
    end if;
    perform pg_advisory_xact_lock_shared(lock_space, hashtext(application::text));
    insert into session_events (application_id, session_id, at, type, actor_kind, actor_id, detail)
      values (application, session, happened, event, actor, actor_name, facts)
      returning id into written;
    return written;
  end
  $$;
CREATE FUNCTION public.sessions_guard() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
  begin
    if old.status not in ('PENDING', 'RUNNING') and
       (new.status, new.ended_at) is distinct from (old.status, old.ended_at) then
      raise exception 'session % has ended as %, which is final', old.id, old.status using errcode = 'restrict_violation';
    end if;
    if old.status = 'RUNNING' and new.status = 'PENDING' then
      raise exception 'session % runs and cannot be pending again', old.id using errcode = 'restrict_violation';
    end if;
    if old.end_status is not null and
       (new.end_status, new.end_reason, new.end_detail) is distinct from (old.end_status, old.end_reason, old.end_detail) then
      raise exception 'the end of session % is decided', old.id using errcode = 'restrict_violation';
    end if;
    return new;
  end
  $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE public.accounts (
    id uuid NOT NULL,
    name text NOT NULL,
    created_at timestamp(3) with time zone NOT NULL
);
CREATE TABLE public.application_limits (
    application_id uuid NOT NULL,
    configured jsonb DEFAULT '{}'::jsonb NOT NULL,
    revision integer DEFAULT 1 NOT NULL,
    updated_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT application_limits_revision_check CHECK ((revision > 0))
);
CREATE TABLE public.applications (
    id uuid NOT NULL,
    name text NOT NULL,
    slug text NOT NULL,
    billing_account_id uuid NOT NULL,
    revision integer NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    updated_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT applications_revision_check CHECK ((revision > 0))
);
CREATE TABLE public.berth_migrations (
    name character varying(255) NOT NULL,
    "timestamp" character varying(255) NOT NULL
);
CREATE TABLE public.berth_migrations_lock (
    id character varying(255) NOT NULL,
    is_locked integer DEFAULT 0 NOT NULL
);
CREATE TABLE public.certificates (
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    ders bytea[] NOT NULL,
    subjects text[] NOT NULL,
    fingerprints text[] NOT NULL,
    not_after timestamp(3) with time zone NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT certificates_check CHECK ((cardinality(subjects) = cardinality(ders))),
    CONSTRAINT certificates_check1 CHECK ((cardinality(fingerprints) = cardinality(ders))),
    CONSTRAINT certificates_ders_check CHECK ((cardinality(ders) > 0))
);
CREATE TABLE public.context_uses (
    session_id uuid NOT NULL,
    context_id uuid NOT NULL,
    application_id uuid NOT NULL,
    host_id uuid NOT NULL,
    exclusive boolean NOT NULL,
    from_version integer,
    created_at timestamp(3) with time zone NOT NULL,
    saving_since timestamp(3) with time zone,
    tries integer DEFAULT 0 NOT NULL,
    due_at timestamp(3) with time zone
);
CREATE TABLE public.context_versions (
    id uuid NOT NULL,
    context_id uuid NOT NULL,
    application_id uuid NOT NULL,
    state text NOT NULL,
    version integer,
    source text NOT NULL,
    session_id uuid,
    partial boolean NOT NULL,
    size_bytes bigint DEFAULT 0 NOT NULL,
    archive_of uuid,
    archive_checksum bytea,
    cookies_of uuid,
    created_at timestamp(3) with time zone NOT NULL,
    due_at timestamp(3) with time zone,
    CONSTRAINT context_versions_archive_checksum_check CHECK ((length(archive_checksum) = 32)),
    CONSTRAINT context_versions_check CHECK ((((state = 'writing'::text) = (version IS NULL)) OR (state = 'gone'::text))),
    CONSTRAINT context_versions_source_check CHECK ((source = ANY (ARRAY['session'::text, 'restore'::text, 'fork'::text, 'import'::text]))),
    CONSTRAINT context_versions_state_check CHECK ((state = ANY (ARRAY['writing'::text, 'kept'::text, 'gone'::text]))),
    CONSTRAINT context_versions_version_check CHECK ((version > 0))
);
CREATE TABLE public.contexts (
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    name text,
    wrapped_key bytea,
    version integer DEFAULT 0 NOT NULL,
    size_bytes bigint DEFAULT 0 NOT NULL,
    last_session_id uuid,
    created_at timestamp(3) with time zone NOT NULL,
    updated_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT contexts_version_check CHECK ((version >= 0))
);
CREATE TABLE public.downloads (
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    session_id uuid NOT NULL,
    host_id uuid NOT NULL,
    guid text NOT NULL,
    state text NOT NULL,
    filename text NOT NULL,
    mime_type text,
    size bigint,
    checksum text,
    failure text,
    created_at timestamp(3) with time zone NOT NULL,
    finished_at timestamp(3) with time zone,
    CONSTRAINT downloads_check CHECK (((state <> 'complete'::text) OR ((mime_type IS NOT NULL) AND (size IS NOT NULL) AND (checksum IS NOT NULL)))),
    CONSTRAINT downloads_checksum_check CHECK ((length(checksum) = 64)),
    CONSTRAINT downloads_size_check CHECK ((size >= 0)),
    CONSTRAINT downloads_state_check CHECK ((state = ANY (ARRAY['running'::text, 'complete'::text, 'failed'::text, 'removed'::text])))
);
CREATE TABLE public.extension_files (
    application_id uuid NOT NULL,
    checksum text NOT NULL,
    used_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT extension_files_checksum_check CHECK ((checksum ~ '^[0-9a-f]{64}$'::text))
);
CREATE TABLE public.extensions (
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    checksum text NOT NULL,
    file_name text NOT NULL,
    size bigint NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    manifest_version integer NOT NULL,
    own_id text,
    created_at timestamp(3) with time zone NOT NULL,
    used_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT extensions_size_check CHECK ((size > 0))
);
CREATE TABLE public.hosts (
    id uuid NOT NULL,
    region text NOT NULL,
    slots integer NOT NULL,
    started_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT hosts_slots_check CHECK ((slots >= 0))
);
CREATE TABLE public.idempotency (
    owner uuid NOT NULL,
    key_digest bytea NOT NULL,
    run uuid NOT NULL,
    request_digest bytea NOT NULL,
    operation text NOT NULL,
    host_id uuid NOT NULL,
    session_id uuid,
    kept json,
    created_at timestamp(3) with time zone NOT NULL,
    expires_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT idempotency_key_digest_check CHECK ((length(key_digest) = 32)),
    CONSTRAINT idempotency_request_digest_check CHECK ((length(request_digest) = 32))
);
CREATE TABLE public.keys (
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    revision integer NOT NULL,
    name text NOT NULL,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    cidr_allow text[] NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    expires_at timestamp(3) with time zone,
    revoked_at timestamp(3) with time zone,
    last_used_at timestamp(3) with time zone,
    last_used_ip text,
    replaced_by uuid,
    CONSTRAINT keys_hash_check CHECK ((length(hash) = 32)),
    CONSTRAINT keys_revision_check CHECK ((revision > 0))
);
CREATE TABLE public.log_chunks (
    application_id uuid NOT NULL,
    session_id uuid NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    kinds jsonb NOT NULL,
    lines bytea NOT NULL,
    written_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT log_chunks_check CHECK ((last >= first)),
    CONSTRAINT log_chunks_first_check CHECK ((first > 0))
)
WITH (fillfactor='70');
ALTER TABLE ONLY public.log_chunks ALTER COLUMN lines SET STORAGE EXTERNAL;
CREATE TABLE public.members (
    application_id uuid NOT NULL,
    account_id uuid NOT NULL,
    role text NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT members_role_check CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'developer'::text, 'viewer'::text])))
);
CREATE TABLE public.outbox (
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    host_id uuid NOT NULL,
    key text NOT NULL,
    staged text NOT NULL,
    content_type text,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp(3) with time zone NOT NULL,
    created_at timestamp(3) with time zone NOT NULL
);
CREATE TABLE public.recording_files (
    session_id uuid NOT NULL,
    page integer NOT NULL,
    host_id uuid NOT NULL,
    state text NOT NULL,
    assembly uuid NOT NULL,
    size bigint,
    attempts integer DEFAULT 0 NOT NULL,
    requested_at timestamp(3) with time zone NOT NULL,
    completed_at timestamp(3) with time zone,
    failure text,
    CONSTRAINT recording_files_state_check CHECK ((state = ANY (ARRAY['PENDING'::text, 'COMPLETED'::text, 'FAILED'::text])))
);
CREATE TABLE public.recording_omissions (
    session_id uuid NOT NULL,
    why text NOT NULL,
    target_id text NOT NULL,
    page integer,
    CONSTRAINT recording_omissions_why_check CHECK ((why = ANY (ARRAY['too_many_at_once'::text, 'too_many_in_all'::text])))
);
CREATE TABLE public.recording_pages (
    session_id uuid NOT NULL,
    page integer NOT NULL,
    started_at timestamp(3) with time zone NOT NULL,
    stored boolean DEFAULT false NOT NULL,
    CONSTRAINT recording_pages_page_check CHECK (((page >= 0) AND (page <= 999)))
);
CREATE TABLE public.recording_runs (
    session_id uuid NOT NULL,
    page integer NOT NULL,
    run integer NOT NULL,
    checksum text NOT NULL
);
CREATE TABLE public.recording_segments (
    session_id uuid NOT NULL,
    page integer NOT NULL,
    sequence integer NOT NULL,
    run integer NOT NULL,
    start_ms integer NOT NULL,
    duration_ms integer NOT NULL,
    width integer NOT NULL,
    height integer NOT NULL,
    bytes integer NOT NULL,
    payload_at integer NOT NULL,
    samples jsonb NOT NULL,
    CONSTRAINT recording_segments_duration_ms_check CHECK ((duration_ms > 0))
);
CREATE TABLE public.recording_spans (
    session_id uuid NOT NULL,
    page integer NOT NULL,
    kind text NOT NULL,
    from_ms integer NOT NULL,
    to_ms integer NOT NULL,
    why text,
    CONSTRAINT recording_spans_kind_check CHECK ((kind = ANY (ARRAY['hidden'::text, 'missing'::text])))
);
CREATE TABLE public.session_controls (
    session_id uuid NOT NULL,
    application_id uuid NOT NULL,
    fence bigint DEFAULT 0 NOT NULL,
    link_epoch integer DEFAULT 0 NOT NULL,
    holder uuid,
    expires_at timestamp(3) with time zone,
    CONSTRAINT session_controls_check CHECK (((holder IS NULL) = (expires_at IS NULL)))
);
CREATE TABLE public.session_events (
    id bigint NOT NULL,
    application_id uuid NOT NULL,
    session_id uuid NOT NULL,
    at timestamp(3) with time zone NOT NULL,
    type text NOT NULL,
    actor_kind text NOT NULL,
    actor_id text,
    detail jsonb NOT NULL,
    CONSTRAINT session_events_actor_kind_check CHECK ((actor_kind = ANY (ARRAY['agentKey'::text, 'client'::text, 'clock'::text, 'operator'::text, 'service'::text, 'browser'::text, 'viewer'::text])))
);
ALTER TABLE public.session_events ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME public.session_events_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE public.session_pages (
    application_id uuid NOT NULL,
    session_id uuid NOT NULL,
    number integer NOT NULL,
    target_id text NOT NULL,
    appeared_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT session_pages_number_check CHECK (((number >= 0) AND (number <= 999)))
);
CREATE TABLE public.sessions (
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    host_id uuid NOT NULL,
    key_id uuid,
    status text NOT NULL,
    region text NOT NULL,
    keep_alive boolean NOT NULL,
    user_metadata jsonb NOT NULL,
    settings jsonb NOT NULL,
    proxy_bytes bigint DEFAULT 0 NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    updated_at timestamp(3) with time zone NOT NULL,
    started_at timestamp(3) with time zone,
    expires_at timestamp(3) with time zone NOT NULL,
    ended_at timestamp(3) with time zone,
    end_status text,
    end_reason text,
    end_detail text,
    end_decided_at timestamp(3) with time zone,
    connect_by timestamp(3) with time zone,
    release_at timestamp(3) with time zone,
    due_at timestamp(3) with time zone GENERATED ALWAYS AS (LEAST(end_decided_at, expires_at, connect_by, release_at)) STORED NOT NULL,
    attached boolean DEFAULT false NOT NULL,
    box jsonb,
    create_digest bytea,
    answer text,
    files_due_at timestamp(3) with time zone,
    forget_due_at timestamp(3) with time zone,
    egress_bytes bigint DEFAULT 0 NOT NULL,
    CONSTRAINT sessions_answer_check CHECK ((answer = ANY (ARRAY['owed'::text, 'lost'::text]))),
    CONSTRAINT sessions_check CHECK ((((end_status IS NULL) = (end_reason IS NULL)) AND ((end_status IS NULL) = (end_decided_at IS NULL)))),
    CONSTRAINT sessions_check1 CHECK (((status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text])) = (ended_at IS NULL))),
    CONSTRAINT sessions_check2 CHECK (((status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text])) OR ((end_status IS NOT NULL) AND (status = end_status)))),
    CONSTRAINT sessions_check3 CHECK (((answer IS NULL) OR (create_digest IS NOT NULL))),
    CONSTRAINT sessions_create_digest_check CHECK ((length(create_digest) = 32)),
    CONSTRAINT sessions_egress_bytes_check CHECK ((egress_bytes >= 0)),
    CONSTRAINT sessions_end_status_check CHECK ((end_status = ANY (ARRAY['COMPLETED'::text, 'TIMED_OUT'::text, 'ERROR'::text]))),
    CONSTRAINT sessions_proxy_bytes_check CHECK ((proxy_bytes >= 0)),
    CONSTRAINT sessions_status_check CHECK ((status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text, 'COMPLETED'::text, 'TIMED_OUT'::text, 'ERROR'::text])))
);
CREATE TABLE public.tokens (
    id uuid NOT NULL,
    account_id uuid NOT NULL,
    application_ids uuid[],
    name text NOT NULL,
    prefix text NOT NULL,
    hash bytea NOT NULL,
    scopes text[] NOT NULL,
    cidr_allow text[] NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    expires_at timestamp(3) with time zone,
    revoked_at timestamp(3) with time zone,
    last_used_at timestamp(3) with time zone,
    last_used_ip text,
    issued_by uuid,
    CONSTRAINT tokens_hash_check CHECK ((length(hash) = 32))
);
CREATE TABLE public.uploads (
    id uuid NOT NULL,
    application_id uuid NOT NULL,
    session_id uuid NOT NULL,
    name text NOT NULL,
    size bigint NOT NULL,
    checksum text NOT NULL,
    created_at timestamp(3) with time zone NOT NULL,
    CONSTRAINT uploads_checksum_check CHECK ((length(checksum) = 64)),
    CONSTRAINT uploads_size_check CHECK ((size >= 0))
);
INSERT INTO public.accounts VALUES ('01a2074b-c0ab-7a82-afc7-434ce44aecee', 'Operator', '2026-11-23 07:25:34.763+00');
INSERT INTO public.application_limits VALUES ('01a2074b-c0d5-7bd7-9559-38c603d57a9d', '{}', 1, '2026-11-23 07:25:34.805+00');
INSERT INTO public.application_limits VALUES ('01a2074b-c3b1-78dd-ac14-9f7cff138604', '{"browsers": {"maxConcurrent": 7}}', 2, '2026-11-23 07:25:36.051+00');
INSERT INTO public.applications VALUES ('01a2074b-c0d5-7bd7-9559-38c603d57a9d', 'Default', 'default', '01a2074b-c0ab-7a82-afc7-434ce44aecee', 1, '2026-11-23 07:25:34.805+00', '2026-11-23 07:25:34.805+00');
INSERT INTO public.applications VALUES ('01a2074b-c3b1-78dd-ac14-9f7cff138604', 'Shop', 'shop', '01a2074b-c0ab-7a82-afc7-434ce44aecee', 1, '2026-11-23 07:25:35.537+00', '2026-11-23 07:25:35.537+00');
INSERT INTO public.berth_migrations VALUES ('0001-first', '2026-11-23T07:25:33.719Z');
INSERT INTO public.berth_migrations VALUES ('0002-limits', '2026-11-23T07:25:33.730Z');
INSERT INTO public.berth_migrations VALUES ('0004-events', '2026-11-23T07:25:33.736Z');
INSERT INTO public.berth_migrations VALUES ('0005-files', '2026-11-23T07:25:33.753Z');
INSERT INTO public.berth_migrations VALUES ('0006-contexts', '2026-11-23T07:25:33.766Z');
INSERT INTO public.berth_migrations VALUES ('0007-network', '2026-11-23T07:25:33.767Z');
INSERT INTO public.berth_migrations VALUES ('0008-certificates-and-extensions', '2026-11-23T07:25:33.779Z');
INSERT INTO public.berth_migrations VALUES ('0009-recordings', '2026-11-23T07:25:33.794Z');
INSERT INTO public.berth_migrations VALUES ('0010-logs', '2026-11-23T07:25:33.802Z');
INSERT INTO public.berth_migrations VALUES ('0011-live', '2026-11-23T07:25:33.804Z');
INSERT INTO public.berth_migrations VALUES ('0012-removed-downloads', '2026-11-23T07:25:33.805Z');
INSERT INTO public.berth_migrations VALUES ('0014-recording-omissions', '2026-11-23T07:25:33.808Z');
INSERT INTO public.berth_migrations VALUES ('0015-credentials', '2026-11-23T07:25:33.809Z');
INSERT INTO public.berth_migrations_lock VALUES ('migration_lock', 0);
INSERT INTO public.hosts VALUES ('01a2074b-bc43-72e3-895a-8af8b540c9e2', 'local', 2, '2026-11-23 07:25:34.535+00');
INSERT INTO public.keys VALUES ('01a2074b-c0e9-7d2b-bfe7-fbd4aed8d7f1', '01a2074b-c0d5-7bd7-9559-38c603d57a9d', 1, 'First key', 'bak_dLvF', '\x01b6a96198a989d83c22526c2229a7b964274b191415551b449caeb954be6250', '{browsers:read,browsers:write,browsers:connect,browsers:files}', '{}', '2026-11-23 07:25:34.825+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.keys VALUES ('01a2074b-c598-7878-a58e-e25860571da9', '01a2074b-c3b1-78dd-ac14-9f7cff138604', 1, 'shop', 'bak_Nn-A', '\x25aae54bc1a94a0b6ce22d004485557fd480d965aefaacc87df9b8000f8174cd', '{browsers:read,browsers:write,browsers:connect,browsers:files}', '{}', '2026-11-23 07:25:36.024+00', NULL, NULL, NULL, NULL, NULL);
INSERT INTO public.members VALUES ('01a2074b-c0d5-7bd7-9559-38c603d57a9d', '01a2074b-c0ab-7a82-afc7-434ce44aecee', 'owner', '2026-11-23 07:25:34.805+00');
INSERT INTO public.members VALUES ('01a2074b-c3b1-78dd-ac14-9f7cff138604', '01a2074b-c0ab-7a82-afc7-434ce44aecee', 'owner', '2026-11-23 07:25:35.537+00');
INSERT INTO public.tokens VALUES ('01a2074b-c0ef-72a9-9edd-c8208dac8d3b', '01a2074b-c0ab-7a82-afc7-434ce44aecee', NULL, 'Console link', 'bpt_m_Al', '\x21cd49df23518a126cd46e7d5a51203d37ce7a6ddb34913876ff776dc96de22d', '{applications:read,applications:write,keys:write,limits:write,account:tokens}', '{}', '2026-11-23 07:25:34.831+00', '2026-11-24 07:25:34.831+00', NULL, NULL, NULL, NULL);
INSERT INTO public.tokens VALUES ('01a2074b-c36e-722a-b03f-124d2b46568a', '01a2074b-c0ab-7a82-afc7-434ce44aecee', NULL, 'ci', 'bpt_pdQX', '\xae2fb1128a0d3f4b2f1b27fb69c1bd4289f7f3cefe9dfa681ee1e4597b270acc', '{applications:read,applications:write,members:write,keys:write,operations:write,credentials:write,connections:write,flows:write,identity:write,invocations:test,reconciliations:write,limits:write,credits:read,purchases:read,handoffs:write,audit:read,account:tokens}', '{}', '2026-11-23 07:25:35.47+00', '2027-02-21 07:25:35.47+00', NULL, '2026-11-23 07:25:35.535+00', '127.0.0.1', NULL);
SELECT pg_catalog.setval('public.session_events_id_seq', 1, false);
ALTER TABLE ONLY public.accounts
    ADD CONSTRAINT accounts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.application_limits
    ADD CONSTRAINT application_limits_pkey PRIMARY KEY (application_id);
ALTER TABLE ONLY public.applications
    ADD CONSTRAINT applications_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.applications
    ADD CONSTRAINT applications_slug_key UNIQUE (slug);
ALTER TABLE ONLY public.berth_migrations_lock
    ADD CONSTRAINT berth_migrations_lock_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.berth_migrations
    ADD CONSTRAINT berth_migrations_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.certificates
    ADD CONSTRAINT certificates_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.context_uses
    ADD CONSTRAINT context_uses_pkey PRIMARY KEY (session_id);
ALTER TABLE ONLY public.context_versions
    ADD CONSTRAINT context_versions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.contexts
    ADD CONSTRAINT contexts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.downloads
    ADD CONSTRAINT downloads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.downloads
    ADD CONSTRAINT downloads_session_id_guid_key UNIQUE (session_id, guid);
ALTER TABLE ONLY public.extension_files
    ADD CONSTRAINT extension_files_pkey PRIMARY KEY (application_id, checksum);
ALTER TABLE ONLY public.extensions
    ADD CONSTRAINT extensions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.hosts
    ADD CONSTRAINT hosts_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_pkey PRIMARY KEY (owner, key_digest);
ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.log_chunks
    ADD CONSTRAINT log_chunks_pkey PRIMARY KEY (session_id, first);
ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (account_id, application_id);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.recording_files
    ADD CONSTRAINT recording_files_pkey PRIMARY KEY (session_id, page);
ALTER TABLE ONLY public.recording_omissions
    ADD CONSTRAINT recording_omissions_pkey PRIMARY KEY (session_id, why, target_id);
ALTER TABLE ONLY public.recording_pages
    ADD CONSTRAINT recording_pages_pkey PRIMARY KEY (session_id, page);
ALTER TABLE ONLY public.recording_runs
    ADD CONSTRAINT recording_runs_pkey PRIMARY KEY (session_id, page, run);
ALTER TABLE ONLY public.recording_runs
    ADD CONSTRAINT recording_runs_session_id_page_checksum_key UNIQUE (session_id, page, checksum);
ALTER TABLE ONLY public.recording_segments
    ADD CONSTRAINT recording_segments_pkey PRIMARY KEY (session_id, page, sequence);
ALTER TABLE ONLY public.recording_spans
    ADD CONSTRAINT recording_spans_pkey PRIMARY KEY (session_id, page, kind, from_ms);
ALTER TABLE ONLY public.session_controls
    ADD CONSTRAINT session_controls_pkey PRIMARY KEY (session_id);
ALTER TABLE ONLY public.session_events
    ADD CONSTRAINT session_events_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.session_pages
    ADD CONSTRAINT session_pages_pkey PRIMARY KEY (session_id, number);
ALTER TABLE ONLY public.session_pages
    ADD CONSTRAINT session_pages_session_id_target_id_key UNIQUE (session_id, target_id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_hash_key UNIQUE (hash);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_session_id_name_key UNIQUE (session_id, name);
CREATE INDEX applications_by_billing ON public.applications USING btree (billing_account_id);
CREATE INDEX applications_by_name ON public.applications USING btree (name);
CREATE INDEX certificates_by_application ON public.certificates USING btree (application_id, id);
CREATE INDEX context_uses_by_context ON public.context_uses USING btree (context_id);
CREATE UNIQUE INDEX context_uses_exclusive ON public.context_uses USING btree (context_id) WHERE exclusive;
CREATE INDEX context_versions_due ON public.context_versions USING btree (due_at) WHERE (due_at IS NOT NULL);
CREATE UNIQUE INDEX context_versions_numbered ON public.context_versions USING btree (context_id, version);
CREATE INDEX contexts_by_application ON public.contexts USING btree (application_id, id);
CREATE INDEX contexts_destroyed ON public.contexts USING btree (id) WHERE (wrapped_key IS NULL);
CREATE UNIQUE INDEX contexts_named ON public.contexts USING btree (application_id, lower(name)) WHERE (wrapped_key IS NOT NULL);
CREATE INDEX downloads_list ON public.downloads USING btree (session_id, created_at, id) WHERE (state = 'complete'::text);
CREATE INDEX downloads_unfinished ON public.downloads USING btree (host_id) WHERE (state = 'running'::text);
CREATE INDEX extensions_by_application ON public.extensions USING btree (application_id, id);
CREATE INDEX extensions_by_file ON public.extensions USING btree (application_id, checksum);
CREATE INDEX extensions_by_use ON public.extensions USING btree (used_at);
CREATE INDEX idempotency_by_session ON public.idempotency USING btree (session_id) WHERE (session_id IS NOT NULL);
CREATE INDEX idempotency_expired ON public.idempotency USING btree (expires_at);
CREATE INDEX keys_list ON public.keys USING btree (application_id, id DESC);
CREATE INDEX log_chunks_by_age ON public.log_chunks USING btree (written_at);
CREATE INDEX members_by_application ON public.members USING btree (application_id);
CREATE INDEX outbox_by_key ON public.outbox USING btree (application_id, key text_pattern_ops);
CREATE INDEX outbox_due ON public.outbox USING btree (host_id, due_at);
CREATE INDEX recording_files_pending ON public.recording_files USING btree (host_id, requested_at) WHERE (state = 'PENDING'::text);
CREATE INDEX session_events_by_application ON public.session_events USING btree (application_id, id);
CREATE INDEX session_events_by_session ON public.session_events USING btree (session_id, id);
CREATE INDEX session_events_ended ON public.session_events USING btree (at) WHERE (type = 'session.ended'::text);
CREATE INDEX sessions_by_host ON public.sessions USING btree (host_id, status);
CREATE INDEX sessions_by_metadata ON public.sessions USING gin (user_metadata jsonb_path_ops);
CREATE INDEX sessions_due ON public.sessions USING btree (host_id, due_at) WHERE (status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text]));
CREATE INDEX sessions_files_due ON public.sessions USING btree (files_due_at) WHERE (files_due_at IS NOT NULL);
CREATE INDEX sessions_forget_due ON public.sessions USING btree (forget_due_at) WHERE (forget_due_at IS NOT NULL);
CREATE INDEX sessions_list ON public.sessions USING btree (application_id, id DESC);
CREATE INDEX sessions_living ON public.sessions USING btree (application_id) WHERE (status = ANY (ARRAY['PENDING'::text, 'RUNNING'::text]));
CREATE INDEX sessions_unanswered ON public.sessions USING btree (key_id, create_digest) WHERE (answer IS NOT NULL);
CREATE INDEX tokens_list ON public.tokens USING btree (account_id, id DESC);
CREATE TRIGGER sessions_guard BEFORE UPDATE ON public.sessions FOR EACH ROW EXECUTE FUNCTION public.sessions_guard();
ALTER TABLE ONLY public.application_limits
    ADD CONSTRAINT application_limits_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.applications
    ADD CONSTRAINT applications_billing_account_id_fkey FOREIGN KEY (billing_account_id) REFERENCES public.accounts(id);
ALTER TABLE ONLY public.certificates
    ADD CONSTRAINT certificates_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.context_uses
    ADD CONSTRAINT context_uses_context_id_fkey FOREIGN KEY (context_id) REFERENCES public.contexts(id);
ALTER TABLE ONLY public.context_uses
    ADD CONSTRAINT context_uses_host_id_fkey FOREIGN KEY (host_id) REFERENCES public.hosts(id);
ALTER TABLE ONLY public.context_versions
    ADD CONSTRAINT context_versions_context_id_fkey FOREIGN KEY (context_id) REFERENCES public.contexts(id);
ALTER TABLE ONLY public.contexts
    ADD CONSTRAINT contexts_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.downloads
    ADD CONSTRAINT downloads_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.downloads
    ADD CONSTRAINT downloads_host_id_fkey FOREIGN KEY (host_id) REFERENCES public.hosts(id);
ALTER TABLE ONLY public.downloads
    ADD CONSTRAINT downloads_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.extension_files
    ADD CONSTRAINT extension_files_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.extensions
    ADD CONSTRAINT extensions_application_id_checksum_fkey FOREIGN KEY (application_id, checksum) REFERENCES public.extension_files(application_id, checksum);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_host_id_fkey FOREIGN KEY (host_id) REFERENCES public.hosts(id);
ALTER TABLE ONLY public.idempotency
    ADD CONSTRAINT idempotency_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id);
ALTER TABLE ONLY public.keys
    ADD CONSTRAINT keys_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.log_chunks
    ADD CONSTRAINT log_chunks_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id);
ALTER TABLE ONLY public.members
    ADD CONSTRAINT members_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.outbox
    ADD CONSTRAINT outbox_host_id_fkey FOREIGN KEY (host_id) REFERENCES public.hosts(id);
ALTER TABLE ONLY public.recording_files
    ADD CONSTRAINT recording_files_host_id_fkey FOREIGN KEY (host_id) REFERENCES public.hosts(id);
ALTER TABLE ONLY public.recording_files
    ADD CONSTRAINT recording_files_session_id_page_fkey FOREIGN KEY (session_id, page) REFERENCES public.recording_pages(session_id, page) ON DELETE CASCADE;
ALTER TABLE ONLY public.recording_omissions
    ADD CONSTRAINT recording_omissions_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.recording_pages
    ADD CONSTRAINT recording_pages_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.recording_runs
    ADD CONSTRAINT recording_runs_session_id_page_fkey FOREIGN KEY (session_id, page) REFERENCES public.recording_pages(session_id, page) ON DELETE CASCADE;
ALTER TABLE ONLY public.recording_segments
    ADD CONSTRAINT recording_segments_session_id_page_fkey FOREIGN KEY (session_id, page) REFERENCES public.recording_pages(session_id, page) ON DELETE CASCADE;
ALTER TABLE ONLY public.recording_spans
    ADD CONSTRAINT recording_spans_session_id_page_fkey FOREIGN KEY (session_id, page) REFERENCES public.recording_pages(session_id, page) ON DELETE CASCADE;
ALTER TABLE ONLY public.session_controls
    ADD CONSTRAINT session_controls_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.session_events
    ADD CONSTRAINT session_events_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.session_pages
    ADD CONSTRAINT session_pages_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_host_id_fkey FOREIGN KEY (host_id) REFERENCES public.hosts(id);
ALTER TABLE ONLY public.sessions
    ADD CONSTRAINT sessions_key_id_fkey FOREIGN KEY (key_id) REFERENCES public.keys(id);
ALTER TABLE ONLY public.tokens
    ADD CONSTRAINT tokens_account_id_fkey FOREIGN KEY (account_id) REFERENCES public.accounts(id);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_application_id_fkey FOREIGN KEY (application_id) REFERENCES public.applications(id);
ALTER TABLE ONLY public.uploads
    ADD CONSTRAINT uploads_session_id_fkey FOREIGN KEY (session_id) REFERENCES public.sessions(id) ON DELETE CASCADE;
