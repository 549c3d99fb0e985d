import { refusal, Unreachable } from "../../shared/api/client";

/**
 * send uploads a file and reports the progress. The API client cannot, because fetch has no upload
 * progress.
 */
export function send<T>(path: string, file: Blob, progress: (share: number) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open("POST", path);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.upload.onprogress = (e) => progress(e.total ? e.loaded / e.total : 0);
    request.upload.onload = () => progress(1);
    request.onload = () => {
      const body = parsed(request.responseText);
      if (request.status >= 200 && request.status < 300) resolve(body as T);
      else reject(refusal(request.status, body));
    };
    request.onerror = () => reject(new Unreachable());
    request.send(file);
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
