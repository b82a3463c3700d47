import { once } from 'node:events';
import type { Request } from 'express';
import { called } from '../session-jobs.js';
import type { Act } from '../session-host.js';

export const regenerate = (request: Request): Promise<void> =>
  called((done) => request.session.regenerate(done));

export const save = (request: Request): Promise<void> => called((done) => request.session.save(done));

export const reload = (request: Request): Promise<void> => called((done) => request.session.reload(done));

/** That of passport. */
export const logOut = (request: Request, options = {}): Promise<void> =>
  called((done) => {
    request.logout(options, done);
  });

export const afterAbort =
  (act: (request: Request) => void | Promise<void>): Act =>
  async (request, response) => {
    await once(response, 'close');
    await act(request);
  };
