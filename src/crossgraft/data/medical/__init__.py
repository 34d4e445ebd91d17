"""DICOM and NIfTI: from files of scanners to pixels, with nothing lost, nothing guessed and no patient named.

Needs the extra ``medical`` (pydicom, nibabel), which is imported when the first such file is met.
"""
