import { DebateSpaceEvents, type DebateSpaceEvent } from 'nestjs-debate-space';
import { filter, firstValueFrom, take, toArray, type Observable } from 'rxjs';

interface App {
  get(token: typeof DebateSpaceEvents): DebateSpaceEvents;
}

/** The events of an app from now on, in a list that grows. */
export function eventsOf(app: App): DebateSpaceEvent[] {
  const events: DebateSpaceEvent[] = [];
  app.get(DebateSpaceEvents).events$.subscribe((event) => events.push(event));
  return events;
}

type EventOf<Type> = Extract<DebateSpaceEvent, { type: Type }>;

/** The next event of a type. */
export function firstEvent<Type extends DebateSpaceEvent['type']>(
  app: App,
  type: Type,
): Promise<EventOf<Type>> {
  return firstValueFrom(eventsOfType(app, type));
}

/** The next events of a type. */
export function nextEvents<Type extends DebateSpaceEvent['type']>(
  app: App,
  type: Type,
  count: number,
): Promise<readonly EventOf<Type>[]> {
  return firstValueFrom(eventsOfType(app, type).pipe(take(count), toArray()));
}

function eventsOfType<Type extends DebateSpaceEvent['type']>(
  app: App,
  type: Type,
): Observable<EventOf<Type>> {
  const isOfType = (event: DebateSpaceEvent): event is EventOf<Type> => event.type === type;
  return app.get(DebateSpaceEvents).events$.pipe(filter(isOfType));
}
