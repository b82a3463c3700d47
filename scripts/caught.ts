/** What `catch` has caught may be anything: of an `Error`, its message. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
