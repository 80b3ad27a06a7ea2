/** True inside the single executable, where source files have other addresses. */
export const isExecutable: boolean = Bun.main.startsWith("/$bunfs/")
