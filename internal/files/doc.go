// Package files holds what systems do differently with files: putting one in the
// place of another that somebody may be reading, opening what might be no file, and
// keeping a directory to its owner. It knows paths. It never knows what is in a file.
package files
