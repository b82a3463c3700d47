import type { Request } from 'express';

/**
 * Logs the user out here, as any app with passport does. It is all that is needed: nestjs-debate-space sees the session
 * end and logs the user out of the debate space.
 */
export function endSession(request: Request): Promise<void> {
  return new Promise((resolve, reject) => {
    request.logout((error?: Error) => {
      if (error) reject(error);
      else resolve();
    });
  });
}
