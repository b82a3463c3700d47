import type { DebateState } from '../demo/debate-state.js';

/** Reads server-sent events one by one. `next` resolves with undefined at the end of the stream. */
export async function openEvents(url: string): Promise<{
  response: Response;
  next: () => Promise<DebateState | undefined>;
  close: () => Promise<void>;
}> {
  const response = await fetch(url);
  if (response.body === null) throw new Error('The event stream has no body.');
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffered = '';
  const next = async (): Promise<DebateState | undefined> => {
    for (;;) {
      const end = buffered.indexOf('\n\n');
      if (end >= 0) {
        const message = buffered.slice(0, end);
        buffered = buffered.slice(end + 2);
        return JSON.parse(message.slice(message.indexOf('data: ') + 6)) as DebateState;
      }
      const { value, done } = await reader.read();
      if (done) return undefined;
      buffered += value;
    }
  };
  return { response, next, close: () => reader.cancel() };
}
