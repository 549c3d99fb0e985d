import { api, got, isUnreachable } from "../../shared/api/client";
import { limits } from "../../shared/api/limits";
import { size } from "../../shared/i18n/format";
import { msg } from "../../shared/i18n/messages";
import { fileName, freeName } from "./filenames";

/** withUploads uploads files, and sends a message with their paths. */
export async function withUploads<T>(
  session: string,
  files: readonly File[],
  send: (paths: string[]) => Promise<T>,
): Promise<T> {
  try {
    return await send(await uploadFiles(session, files));
  } catch (error) {
    for (const file of files) {
      const upload = uploads.get(file);
      if (upload && !isUnreachable(error)) upload.done = false; // it may be deleted before the next attempt
    }
    throw error;
  }
}

/** The uploads of files with messages. An attempt to send a message again gives them the same names. */
const uploads = new WeakMap<File, { session: string; path: string; done: boolean }>();

/**
 * uploadFiles uploads files under names that no file of the conversation has, because a message that waits may refer to
 * a file with the same name.
 */
async function uploadFiles(session: string, files: readonly File[]): Promise<string[]> {
  const fresh = files.filter((f) => uploads.get(f)?.session !== session);
  if (fresh.length) {
    const { items } = await got(api.GET("/api/v1/sessions/{session}/files", { params: { path: { session } } }));
    const taken = new Set(items.map((f) => f.path));
    for (const f of fresh) {
      const path = freeName(fileName(f.name), (name) => taken.has(name));
      taken.add(path);
      uploads.set(f, { session, path, done: false });
    }
  }
  for (const f of files) {
    const upload = uploads.get(f)!;
    if (!upload.done) await keepFile(session, f, upload.path);
    upload.done = true;
  }
  return files.map((f) => uploads.get(f)!.path);
}

/**
 * addFiles uploads files under names that no file of the conversation has. It returns the new names of the others, by
 * their own.
 */
export async function addFiles(session: string, files: readonly File[]): Promise<[string, string][]> {
  const { items } = await got(api.GET("/api/v1/sessions/{session}/files", { params: { path: { session } } }));
  const taken = new Set(items.map((f) => f.path));
  const other: [string, string][] = [];
  for (const f of files) {
    const path = freeName(fileName(f.name), (name) => taken.has(name));
    await keepFile(session, f, path);
    taken.add(path);
    if (path !== fileName(f.name)) other.push([f.name, path]);
  }
  return other;
}

/** checkSizes fails if a file is larger than the hub accepts. */
export async function checkSizes(files: readonly File[]) {
  for (const file of files) await checkSize(file);
}

async function checkSize(file: File) {
  const most = (await limits()).session_file;
  if (file.size > most) throw new Error(msg("chat.tooLarge", { name: file.name, most: size(most) }));
}

/** keepFile uploads a file to a conversation. It replaces a file with the same name. */
async function keepFile(session: string, file: File, path: string) {
  await checkSize(file);
  await got(
    api.PUT("/api/v1/sessions/{session}/files/{path}", {
      params: { path: { session, path } },
      body: file as unknown as string, // raw bytes; the document does not declare their type
      bodySerializer: () => file,
      headers: { "Content-Type": "application/octet-stream" },
    }),
  );
}
