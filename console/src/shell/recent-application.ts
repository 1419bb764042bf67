// The application that was used last in this tab. Pages without an application show its navigation.
import { tabStored } from '../api/storage.ts';

const STORED = 'berth.application';

export const recentApplication = (): string | undefined => tabStored.getItem(STORED) ?? undefined;

export const rememberApplication = (id: string): void => tabStored.setItem(STORED, id);

export const forgetApplication = (): void => tabStored.removeItem(STORED);
